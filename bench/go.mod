module github.com/resilience-toolkit/resilience/bench

go 1.26.0

require (
	github.com/resilience-toolkit/resilience v0.0.0
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/resilience-toolkit/resilience => ../
