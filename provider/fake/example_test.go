package fake_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

func ExampleMatch() {
	llm := fake.Match(
		fake.Rule{Contains: "Lovelace", Answer: fake.JSON(map[string]string{"name": "Ada"})},
		fake.Rule{Answer: fake.JSON(map[string]string{"name": "somebody"})},
	)
	type person struct {
		Name string `json:"name"`
	}
	for _, text := range []string{"Miss Lovelace wrote.", "It was written."} {
		p, _ := provider.Extract[person](context.Background(), llm, provider.Request{Text: text})
		fmt.Println(p.Name)
	}
	// Output:
	// Ada
	// somebody
}

func ExampleScript() {
	llm := fake.Script(
		fake.Fail(provider.StatusError(503)),
		fake.JSON(`{"name": "Ada"}`),
	)
	type person struct {
		Name string `json:"name"`
	}
	for range 3 {
		p, err := provider.Extract[person](context.Background(), llm, provider.Request{Text: "Who was it?"})
		fmt.Println(p.Name, err, errors.Is(err, fake.ErrNoAnswer))
	}
	// Output:
	// provider: the host is overloaded (status 503) false
	// Ada <nil> false
	//  fake: no answer: the script of 2 is at its end true
}
