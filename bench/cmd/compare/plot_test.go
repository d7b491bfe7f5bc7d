package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAChartIsAPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chart.png")
	x := []float64{1, 10, 100, 1_000, 1_000_000}
	require.NoError(t, drawChart(path, chart{
		title: "Admissions against the number of keys", y: "ns per call", x: "keys",
		series: []series{
			{name: "ours", ours: true, x: x, y: []float64{80, 81, 85, 100, 440}},
			{name: "another", x: x, y: []float64{95, 95, 99, 110, 430}},
		},
	}))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	assert.InDelta(t, 8.2*resolution, picture.Bounds().Dx(), 2)
	// Our line is drawn in our colour, and is not all there is.
	found := map[bool]bool{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			r, g, b, _ := picture.At(x, y).RGBA()
			found[r>>8 == uint32(accent.R) && g>>8 == uint32(accent.G) && b>>8 == uint32(accent.B)] = true
		}
	}
	assert.Equal(t, map[bool]bool{true: true, false: true}, found)
}

func TestAPartOfADocumentIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	require.NoError(t, os.WriteFile(path, []byte("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n"), 0o644))
	require.NoError(t, write(path, map[string]string{"x": "new\n"}))
	require.NoError(t, write(path, map[string]string{"x": "newer\n"}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "a\n<!-- begin x -->\n\nnewer\n\n<!-- end x -->\nb\n", string(text))
	assert.Error(t, write(path, map[string]string{"y": "nowhere"}))
}
