package lab

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Figure shows lines over the sweep, both axes logarithmic.
type Figure struct {
	Name, Title string
	X, Y        string // what the axes show
	Lines       []Line
}

// A Line is what one configuration gave. Points must have positive coordinates.
type Line struct {
	Name   string
	Points [][2]float64
}

const (
	figureWidth  = 9 * vg.Inch
	figureHeight = 5.5 * vg.Inch
	legendWidth  = 2.6 * vg.Inch
)

// write writes the figure as SVG: equal figures, equal bytes.
func (f *Figure) write(w io.Writer) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Title.Padding = vg.Points(6)
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	for i, l := range f.Lines {
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
		p.Add(line, marks)
		legend.Add(l.Name, line, marks)
	}
	canvas := vgsvg.New(figureWidth, figureHeight)
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(all, figureWidth-legendWidth+vg.Points(10), 0, 0, -vg.Points(24)))
	_, err := canvas.WriteTo(w)
	return err
}
