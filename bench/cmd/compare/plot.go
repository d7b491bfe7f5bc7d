package main

import (
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"

	fontweight "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A chart has some series over a logarithmic axis.
type chart struct {
	title, x, y string
	by          float64 // what the values are divided by; zero is 1
	series      []series
}

type series struct {
	name string
	ours bool
	x, y []float64
}

var (
	ink    = color.RGBA{0x33, 0x3d, 0x4b, 0xff}
	faint  = color.RGBA{0xe4, 0xe7, 0xeb, 0xff}
	accent = color.RGBA{0xd9, 0x48, 0x0f, 0xff}
	others = []color.RGBA{{0x1c, 0x7e, 0xd6, 0xff}, {0x2f, 0x9e, 0x44, 0xff}, {0x7a, 0x5a, 0xc8, 0xff}, {0x86, 0x8e, 0x96, 0xff}}
)

const (
	width, height = 8.2 * vg.Inch, 4.4 * vg.Inch
	above         = 0.8 * vg.Inch  // for the title
	beside        = 1.65 * vg.Inch // for the names, at the ends of their lines
	resolution    = 144
)

// drawChart draws a chart into a PNG file. Names stand beside their lines, so that nobody
// has to look up colours.
func drawChart(path string, c chart) error {
	p := plot.New()
	if c.by == 0 {
		c.by = 1
	}
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	style := func(size vg.Length, ink color.Color) text.Style {
		f := sans
		f.Size = size
		return text.Style{Color: ink, Font: f, Handler: plot.DefaultTextHandler}
	}
	p.X.Label.Text = c.x
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = style(11, ink)
		axis.Tick.Label = style(10.5, ink)
		axis.LineStyle.Width = 0
		axis.Tick.LineStyle.Width = 0
		axis.Label.Padding = 6
	}
	p.X.Label.TextStyle.XAlign = text.XCenter
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XCenter, text.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	p.X.Scale = plot.LogScale{}
	sizes := c.series[0].x
	p.X.Tick.Marker = plot.ConstantTicks(ticks(sizes))

	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: faint, Width: 1}
	p.Add(grid)

	most := 0.
	other := 0
	var colors []color.RGBA
	var layers []plot.Plotter
	for _, s := range c.series {
		points := make(plotter.XYs, len(s.x))
		for i := range points {
			points[i] = plotter.XY{X: s.x[i], Y: s.y[i] / c.by}
			most = max(most, points[i].Y)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		shade, thick := accent, vg.Length(3)
		if s.ours && colors != nil {
			line.Dashes = []vg.Length{6, 4} // ours, but in another way
		}
		if !s.ours {
			shade, thick = others[other%len(others)], 1.6
			other++
		}
		line.Color, line.Width = shade, thick
		dots.Shape, dots.Color, dots.Radius = draw.CircleGlyph{}, shade, thick*0.9
		colors = append(colors, shade)
		layers = append([]plot.Plotter{line, dots}, layers...)
	}
	p.Add(layers...) // the first series above the others
	p.Y.Min, p.Y.Max = 0, most*1.06
	p.Y.Tick.Marker = plot.ConstantTicks(steps(most))
	p.X.Min, p.X.Max = sizes[0], sizes[len(sizes)-1]

	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(resolution), vgimg.UseBackgroundColor(color.White))
	all := draw.New(canvas)
	area := draw.Crop(all, 0.25*vg.Inch, -beside, 0.15*vg.Inch, -above)
	p.Draw(area)
	title, unit := style(14, ink), style(11, ink)
	title.Font.Weight = fontweight.WeightBold
	title.YAlign, unit.YAlign = text.YTop, text.YTop
	all.FillText(title, vg.Point{X: 0.25 * vg.Inch, Y: all.Max.Y - 0.18*vg.Inch}, c.title)
	all.FillText(unit, vg.Point{X: 0.25 * vg.Inch, Y: all.Max.Y - 0.46*vg.Inch}, c.y)
	data := p.DataCanvas(area)
	_, toY := p.Transforms(&data)

	// The names, moved apart where lines end together.
	type label struct {
		of int
		y  vg.Length
	}
	var labels []label
	for i, s := range c.series {
		labels = append(labels, label{i, toY(s.y[len(s.y)-1] / c.by)})
	}
	slices.SortFunc(labels, func(a, b label) int { return int(math.Copysign(1, float64(a.y-b.y))) })
	const apart = vg.Length(14)
	for range 50 {
		for i := 1; i < len(labels); i++ {
			if over := apart - (labels[i].y - labels[i-1].y); over > 0 {
				labels[i-1].y -= over / 2
				labels[i].y += over / 2
			}
		}
	}
	for _, l := range labels {
		s := c.series[l.of]
		st := style(11, colors[l.of])
		if s.ours {
			st.Font.Weight = fontweight.WeightBold
		}
		st.YAlign = text.YCenter
		data.FillText(st, vg.Point{X: data.Max.X + 9, Y: l.y}, s.name)
	}

	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// steps are at round values from zero on.
func steps(most float64) (list []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	switch {
	case most/step < 2:
		step /= 4
	case most/step < 5:
		step /= 2
	}
	for y := 0.; y <= most*1.06; y += step {
		name := strconv.FormatFloat(y, 'f', -1, 64)
		if y >= 1000 {
			name = significant(y)
		}
		list = append(list, plot.Tick{Value: y, Label: name})
	}
	return list
}

// ticks are at the sizes that were measured.
func ticks(sizes []float64) []plot.Tick {
	var list []plot.Tick
	for _, x := range sizes {
		name := strconv.FormatFloat(x, 'f', -1, 64)
		switch {
		case x >= 1e6:
			name = strconv.FormatFloat(x/1e6, 'f', -1, 64) + " million"
		case x >= 1e3:
			name = significant(x)
		}
		list = append(list, plot.Tick{Value: x, Label: name})
	}
	return list
}
