module github.com/resilience-toolkit/resilience/examples/httpclient

go 1.26.0

replace github.com/resilience-toolkit/resilience => ../../

require (
	github.com/google/go-github/v75 v75.0.0
	github.com/resilience-toolkit/resilience v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/go-querystring v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
