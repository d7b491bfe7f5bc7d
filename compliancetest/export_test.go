package compliancetest

// Only returns the suite with one of its rules.
func (s Suite) Only(name string) Suite {
	var groups []group
	for _, g := range s.groups {
		for _, c := range g.cases {
			if c.Name == name {
				g.cases = []ruleCase{c}
				groups = append(groups, g)
				break
			}
		}
	}
	s.groups = groups
	return s
}
