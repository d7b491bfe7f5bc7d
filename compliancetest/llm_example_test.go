package compliancetest_test

import (
	"fmt"

	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

// The host of the fake model is the fake itself. For a real adapter New starts a server
// that puts each answer into the vendor's own words.
func ExampleLLM() {
	suite := compliancetest.LLM(compliancetest.LLMHarness{
		New: func(answer func(text string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
			llm := fake.Func(func(text string) fake.Answer {
				a := answer(text)
				switch {
				case a.Junk != "":
					return fake.Text(a.Junk)
				case a.Kind == provider.RateLimited || a.Kind == provider.Overloaded:
					return fake.Fail(&provider.HostError{Kind: a.Kind, Transient: true, Hint: a.Hint})
				case a.Kind != "":
					return fake.Fail(&provider.HostError{Kind: a.Kind}) // all others for good?
				}
				return fake.Answer{Completion: a.Completion, Delay: a.Delay}
			})
			return compliancetest.HostedLLM{LLM: llm, Requests: func() (seen []compliancetest.HostRequest) {
				for _, r := range llm.Requests() {
					request := compliancetest.HostRequest{Text: r.Text}
					if r.System != "" {
						request.System = &r.System
					}
					seen = append(seen, request)
				}
				return seen
			}}, nil
		},
		// Nothing comes over a wire, so that blank junk is an empty answer.
		Cannot: func(a compliancetest.HostAnswer) bool { return a.Junk == " " },
	})
	fmt.Println(suite.Check()) // in a test, suite.Run(t)
	// Output:
	// compliancetest: LLM/passing-failures-are-transient: the failure "the host failed" is not transient, want so
	// 	it is a rule because a retry goes by it, and would give up on what the next second mends
}
