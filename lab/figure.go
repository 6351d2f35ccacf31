package lab

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
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
	figureWidth  = 9 * vg.Inch
	figureHeight = 5.5 * vg.Inch
	legendWidth  = 2.6 * vg.Inch
)

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
	if f.Linear {
		p.X.Min, p.Y.Min = 0, 0
	} else {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid())
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	measured := -1
	for _, l := range f.Lines {
		if !l.Printed {
			measured++
		}
		if err := l.add(p, &legend, max(0, measured)); err != nil {
			return err
		}
	}
	canvas := vgsvg.New(figureWidth, figureHeight)
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(all, figureWidth-legendWidth+vg.Points(10), 0, 0, -vg.Points(24)))
	_, err := canvas.WriteTo(w)
	return err
}

// add draws l with the i-th colour.
func (l *Line) add(p *plot.Plot, legend *plot.Legend, i int) error {
	points := make(plotter.XYs, len(l.Points))
	for k, at := range l.Points {
		points[k] = plotter.XY{X: at[0], Y: at[1]}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/7), vg.Points(1.2)
	marks.Color, marks.Shape, marks.Radius = line.Color, plotutil.Shape(i), vg.Points(2.5)
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
