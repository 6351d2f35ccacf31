package lab

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Figure shows lines over the sweep.
type Figure struct {
	Name, Title string // Name ends that of its file; one may have none
	X, Y        string // what the axes show
	// Linear axes begin at 0 if nothing lies below; by default both are logarithmic, and
	// points must have positive coordinates.
	Linear bool
	Lines  []Line
}

// A Line is what one configuration gave.
type Line struct {
	Name   string
	Points [][2]float64
	Half   []float64 // half of the confidence interval of each point; nil: none is shown
	// Printed says that the points are those of a source: without Half, and in the colour of
	// the line before. One point is a mark, more are a dashed line without marks.
	Printed bool
}

const (
	plotWidth    = 6.4 * vg.Inch // the legend stands beside it
	figureHeight = 5.5 * vg.Inch
	legendSpace  = 12 // points around the legend
)

// palette has a colour for each line of a figure that has no more than these.
var palette = []color.Color{
	rgb(0x1f77b4), rgb(0xd62728), rgb(0x2ca02c), rgb(0x9467bd), rgb(0xff7f0e), rgb(0x8c564b),
	rgb(0x17becf), rgb(0xe377c2), rgb(0x7f7f7f), rgb(0xbcbd22), rgb(0x0b3d91), rgb(0x000000),
}

func rgb(v uint32) color.Color { return color.RGBA{byte(v >> 16), byte(v >> 8), byte(v), 0xff} }

// A browser turns a figure that has this dark where the reader's page is, and keeps its hues.
const darkStyle = `<style>@media (prefers-color-scheme:dark){svg{filter:invert(.92) hue-rotate(180deg)}}</style>` + "\n"

// logTicks label a logarithmic axis: of a decade as many multiples as there is room for.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(least, most float64) []plot.Tick {
	labelled := []int{1}
	switch span := math.Log10(most / least); {
	case span <= 1:
		labelled = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	case span <= 1.5:
		labelled = []int{1, 2, 3, 5, 7}
	case span <= 2.5:
		labelled = []int{1, 2, 5}
	}
	var ticks []plot.Tick
	for decade := math.Pow10(int(math.Floor(math.Log10(least)))); decade <= most; decade *= 10 {
		for k := 1; k < 10; k++ {
			tick := plot.Tick{Value: decade * float64(k)}
			if slices.Contains(labelled, k) {
				tick.Label = strconv.FormatFloat(tick.Value, 'g', 6, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// xys are the points of a line with their errors, as gonum wants them.
type xys struct {
	plotter.XYs
	half []float64
}

// YError is half of the interval of point i, downwards and upwards.
func (p xys) YError(i int) (down, up float64) { return p.half[i], p.half[i] }

// write writes the figure as SVG: equal figures, equal bytes.
func (f *Figure) write(w io.Writer) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = nil
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.Padding, legend.ThumbnailWidth = true, true, vg.Points(3), vg.Points(28)
	for _, text := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &legend.TextStyle,
	} {
		text.Font.Variant = "Sans"
	}
	if f.Linear {
		p.X.Min, p.Y.Min = 0, 0
	} else {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = logTicks{}, logTicks{}
	}
	p.Add(plotter.NewGrid())
	measured, width := -1, vg.Length(0)
	for k, l := range f.Lines {
		if !l.Printed {
			measured++
		}
		if err := l.add(p, &legend, max(0, measured), l.covered(f.Lines[k+1:])); err != nil {
			return err
		}
		width = max(width, legend.TextStyle.Width(l.Name))
	}
	// A viewer without this font has another one, which may be wider.
	width = width*1.15 + legend.ThumbnailWidth + vg.Points(2*legendSpace)
	canvas := vgsvg.New(plotWidth+width, figureHeight)
	all := draw.New(canvas)
	all.FillPolygon(color.White, []vg.Point{
		{X: all.Min.X, Y: all.Min.Y}, {X: all.Max.X, Y: all.Min.Y}, {X: all.Max.X, Y: all.Max.Y}, {X: all.Min.X, Y: all.Max.Y},
	})
	p.Draw(draw.Crop(all, 0, -width, 0, 0))
	legend.Draw(draw.Crop(all, plotWidth+vg.Points(legendSpace), 0, 0, -vg.Points(24)))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	drawn := strings.ReplaceAll(svg.String(), "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;")
	_, err := io.WriteString(w, strings.Replace(drawn, "<g ", darkStyle+"<g ", 1))
	return err
}

// covered is how many of the lines that are drawn later lie upon most of l, which needs to be wider then.
func (l *Line) covered(later []Line) (n int) {
	for _, o := range later {
		same := 0
		for _, at := range l.Points {
			near := func(q [2]float64) bool { return q[0] == at[0] && math.Abs(q[1]-at[1]) <= 0.02*math.Abs(at[1]) }
			if slices.ContainsFunc(o.Points, near) {
				same++
			}
		}
		if 2*same > len(l.Points) {
			n++
		}
	}
	return n
}

// add draws l with the i-th colour, so wide that so many lines which cover it do not hide it.
func (l *Line) add(p *plot.Plot, legend *plot.Legend, i, covered int) error {
	points := make(plotter.XYs, len(l.Points))
	for k, at := range l.Points {
		points[k] = plotter.XY{X: at[0], Y: at[1]}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes, line.Width = palette[i%len(palette)], plotutil.Dashes(i/len(palette)), vg.Points(1.2+2.4*float64(covered))
	marks.Color, marks.Shape, marks.Radius = line.Color, plotutil.Shape(i), vg.Points(2.5+1.8*float64(covered))
	switch {
	case l.Printed && len(l.Points) == 1:
		marks.Shape, marks.Radius = draw.RingGlyph{}, vg.Points(5)
		p.Add(marks)
		legend.Add(l.Name, marks)
	case l.Printed:
		line.Dashes, line.Width = []vg.Length{vg.Points(1), vg.Points(3)}, vg.Points(1)
		p.Add(line)
		legend.Add(l.Name, line)
	default:
		p.Add(line, marks)
		legend.Add(l.Name, line, marks)
	}
	if l.Half == nil {
		return nil
	}
	bars, err := plotter.NewYErrorBars(xys{points, l.Half})
	if err != nil {
		return err
	}
	bars.Color = color.Gray{Y: 0x40}
	p.Add(bars)
	return nil
}
