package main

import "strings"

// A document is a text and the name it goes by. To the loopback host the name in the
// text says how to misbehave.
type document struct{ name, text string }

func receipt(name string) document {
	return document{name, "Receipt (" + name + ")\nCorner Shop\n1 tea 2.50\n1 scone 3.00\nTotal 5.50\n"}
}

var documents = []document{
	receipt("a good day"),
	receipt("a fence around the answer"),
	receipt("reasoning before the answer"),
	receipt("busy at first"),
	receipt("too many requests at first"),
	receipt("a connection that breaks at first"),
	receipt("no answer at first"),
	{"a blank page", " \n\t\n"},
	receipt("nothing but reasoning"),
	receipt("an answer that is cut"),
	receipt("a model that declines"),
	receipt("a filter"),
	receipt("prose"),
	receipt("another shape"),
	receipt("a proxy's page"),
	{"a long text", "Receipt (a long text)\n" + strings.Repeat("1 tea 2.50\n", 400)},
	receipt("an account without money"),
	receipt("a host that is down"),
	receipt("a host that is down, still"),
	receipt("a host that is down, as is known"),
}
