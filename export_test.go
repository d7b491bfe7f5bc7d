package resilience

// Watched reports whether a chain of the policies is watched for the rule of [Policy].
func Watched(policies ...Policy) bool { return !allSequential(policies) }
