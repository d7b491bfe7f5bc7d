module github.com/resilience-toolkit/resilience/examples/customcache

go 1.26.0

require (
	github.com/resilience-toolkit/resilience v0.0.0
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/google/jsonschema-go v0.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/resilience-toolkit/resilience => ../../
