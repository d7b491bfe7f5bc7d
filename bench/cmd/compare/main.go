// Command compare measures the toolkit beside what people would use instead, and prints
// a table of ratios.
//
//	go run ./cmd/compare                 everything, in some ten minutes
//	go run ./cmd/compare -quick          the same, too short to be believed
//	go run ./cmd/compare -only Redis     the contests whose name matches an expression, and of the
//	                                     tables named processes, growth and bytes those that do
//	go run ./cmd/compare -docs ../docs   everything, written into performance.md, with its plots
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/resilience-toolkit/resilience/bench"
)

func main() {
	if worker() {
		return
	}
	quick := flag.Bool("quick", false, "measure too little to be believed, to see that it runs")
	only := flag.String("only", "", "measure only the contests and tables whose name matches this `expression`")
	docs := flag.String("docs", "", "write the results into performance.md in this `directory`, and the plots")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *only != "" && *docs != "" {
		fmt.Fprintln(os.Stderr, "compare: want no arguments but flags, of -only and -docs one, and an expression that is one:", err)
		os.Exit(2)
	}
	t := &run{
		local:  bench.Options{Runs: 7, Turns: 40, Turn: time.Millisecond},
		shared: bench.Options{Runs: 7, Turns: 10, Turn: 25 * time.Millisecond},
		calls:  2 * time.Second,
	}
	if *quick {
		t.local = bench.Options{Runs: 2, Turns: 3, Turn: 100 * time.Microsecond}
		t.shared = bench.Options{Runs: 2, Turns: 2, Turn: time.Millisecond}
		t.calls = 100 * time.Millisecond
	}
	defer t.end()

	// Each part is printed when it is there, and kept for the document.
	parts := map[string]string{}
	part := func(name string, write func(w io.Writer)) {
		var b bytes.Buffer
		write(&b)
		parts[name] = b.String()
		fmt.Println(b.String())
	}
	part("machine", t.machine)
	results := t.contests(pattern)
	part("ratios", func(w io.Writer) { ratios(w, results) })
	part("details", func(w io.Writer) { details(w, results) })
	found := len(results) > 0
	for _, table := range []struct {
		name  string
		write func(io.Writer)
	}{{"processes", t.processes}, {"growth", t.growth}, {"bytes", t.bytes}} {
		if pattern.MatchString(table.name) {
			found = true
			part(table.name, table.write)
		}
	}
	if !found {
		t.Fatal("no contest and no table matches", *only)
	}
	if *docs == "" {
		return
	}
	t.plots(filepath.Join(*docs, "img"))
	t.check(write(filepath.Join(*docs, "performance.md"), parts))
}

// write replaces the parts of a document, which are between comments with their names.
func write(path string, parts map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, part := range parts {
		begin, end := []byte("<!-- begin "+name+" -->\n"), []byte("<!-- end "+name+" -->")
		before, rest, found := bytes.Cut(text, begin)
		_, after, closed := bytes.Cut(rest, end)
		if !found || !closed {
			return fmt.Errorf("%s has no place for %s", path, name)
		}
		text = bytes.Join([][]byte{before, begin, []byte("\n" + part + "\n"), end, after}, nil)
	}
	return os.WriteFile(path, text, 0o644)
}
