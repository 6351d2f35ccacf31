package diagram

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/poundlock/poundlock/verify/scenario"
)

// Sizes in pixels.
const (
	rowHeight   = 24
	fontSize    = 12
	charWidth   = 7.3 // of the monospaced font at fontSize
	headHeight  = 30  // names of processes
	margin      = 16
	numberWidth = 44 // of the column of step numbers
	leastGap    = 92 // between two lines of life
	mostGap     = 200
	stub        = 26 // how far the arrow of a message that does not arrive goes
	aside       = 14 // from a line of life to the label of a message
	clear       = 6  // how near an arrow comes to the dot of a step that is not its own
	mostBow     = 40 // by how much an arrow is bent at most
)

// style has explicit colours twice, because not every viewer knows CSS variables.
const style = `
text{font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1c2733;white-space:pre}
.paper{fill:#fff}
.name{font-weight:bold}
.dim{fill:#6b7783}
.plate{fill:#fff;fill-opacity:.9}
.plate.looped{fill:#f3effb}
.life{stroke:#9aa6b2;stroke-width:1.5}
.never{stroke-dasharray:2 5}
.try{fill:#e8c468}
.crit{fill:#2e9e6b}
.leaving{fill:#a9dcc5}
.ejected{fill:#fff;stroke:#c0392b;stroke-width:1.5}
.arrow{stroke:#3568b8;stroke-width:1.4;fill:none}
.head{fill:#3568b8}
.open{stroke-dasharray:4 3}
.end{fill:#fff;stroke:#3568b8;stroke-width:1.4}
.dot{fill:#1c2733}
.fault{stroke:#c0392b;stroke-width:2;fill:none}
.bad{fill:#c0392b}
.loop{fill:#8a63d2;fill-opacity:.1}
.again{fill:#7a50c8}
.brace{stroke:#8a63d2;stroke-width:2;fill:none}
@media (prefers-color-scheme:dark){
text{fill:#dde4ea}
.paper{fill:#14191f}
.dim{fill:#8e9aa6}
.plate{fill:#14191f}
.plate.looped{fill:#202032}
.life{stroke:#5b6773}
.try{fill:#b98f2c}
.crit{fill:#37b57c}
.leaving{fill:#2b6a4d}
.ejected{fill:#14191f;stroke:#ff7566}
.arrow{stroke:#7fabef}
.head{fill:#7fabef}
.end{fill:#14191f;stroke:#7fabef}
.dot{fill:#dde4ea}
.fault{stroke:#ff7566}
.bad{fill:#ff7566}
.again{fill:#b49af0}
}
`

// SVG writes r as a space-time diagram: a line of life for each process, time from
// top to bottom, one row a step. Title and reason may be "". The file needs no
// other one, and follows the viewer's light or dark scheme.
func SVG(w io.Writer, r scenario.Run, title, reason string) error {
	d := &drawing{run: r, list: flights(r), column: map[string]int{}}
	d.layout(title)
	for i := range r.Processes {
		d.life(i)
	}
	for _, f := range d.list {
		d.message(f)
	}
	for i, e := range r.Steps {
		d.mark(i, e)
	}
	d.loop()
	d.foot(reason)
	return d.write(w, title, reason)
}

// A drawing is a diagram in the making.
type drawing struct {
	run    scenario.Run
	list   []flight
	column map[string]int // of a process

	gap    float64
	left   float64         // before the first line of life, but for half a gap
	top    float64         // above the first row
	back   strings.Builder // lies below all shapes
	shapes strings.Builder
	labels strings.Builder // lie above all shapes
	width  float64         // so far
	end    float64         // of the last line of text
}

// layout chooses the distance of the lines of life, between which labels stand, and how much room
// there is before the first one: no label covers a number.
func (d *drawing) layout(title string) {
	for i, name := range d.run.Processes {
		d.column[name] = i
	}
	longest := 0
	for _, f := range d.list {
		longest = max(longest, utf8.RuneCountInString(f.text))
	}
	for i, e := range d.run.Steps {
		if text, _, _ := d.words(i, e); e.Process != "" {
			longest = max(longest, utf8.RuneCountInString(text))
		}
	}
	d.gap = min(max(float64(longest)*charWidth+aside+10, leastGap), mostGap)
	d.left = numberWidth
	need := func(column int, text string, space float64) {
		size := float64(utf8.RuneCountInString(text)) * charWidth
		d.left = max(d.left, numberWidth+size+space-d.gap*(float64(column)+0.6))
	}
	for _, f := range d.list {
		if from, to := d.column[f.from], d.column[f.to]; f.arrived >= 0 && from < to {
			need(to, d.short(f.text), aside)
		}
	}
	for i, e := range d.run.Steps {
		if text, _, side := d.words(i, e); side < 0 {
			need(d.column[e.Process], text, 10)
		}
	}
	d.top = margin + headHeight
	if title != "" {
		d.top += rowHeight
		d.text(margin, margin+fontSize, "start", "name", title)
	}
	d.grow(d.x(len(d.run.Processes)-1) + d.gap)
}

// x is the place of a line of life. The first one leaves room for labels.
func (d *drawing) x(i int) float64 { return margin + d.left + d.gap*(float64(i)+0.6) }

// y is the middle of the row of step i.
func (d *drawing) y(i int) float64 { return d.top + rowHeight*(float64(i)+0.5) }

func (d *drawing) grow(x float64) { d.width = max(d.width, x+margin) }

// number writes a coordinate, without digits that nobody sees.
func number(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

func (d *drawing) text(x, y float64, anchor, class, text string) {
	size := float64(utf8.RuneCountInString(text)) * charWidth
	switch anchor {
	case "start":
		d.grow(x + size)
	case "middle":
		d.grow(x + size/2)
	}
	fmt.Fprintf(&d.labels, `<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`+"\n",
		number(x), number(y), anchor, class, escape(text))
}

// label is text that lies on lines: a plate hides them, since what is left of a line
// between two characters reads like a minus.
func (d *drawing) label(x, y float64, anchor, class, text string) {
	if text == "" {
		return
	}
	width := float64(utf8.RuneCountInString(text)) * charWidth
	left := x
	if anchor == "end" {
		left -= width
	}
	plate := "plate"
	if d.run.Loop >= 0 && y > d.y(d.run.Loop)-rowHeight/2 {
		plate += " looped"
	}
	fmt.Fprintf(&d.labels, `<rect x="%s" y="%s" width="%s" height="%d" class="%s"/>`+"\n",
		number(left), number(y-fontSize+2), number(width), fontSize, plate)
	d.text(x, y, anchor, class, text)
}

// short is the text of a message where it has the room between two lines of life: what it leaves
// out, at a comma where there is one, is in the text of the run.
func (d *drawing) short(text string) string {
	most := int((d.gap - aside - 4) / charWidth)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	part, comma, depth := string([]rune(text)[:most-3]), -1, 0
	for i, c := range part {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 1 {
				comma = i
			}
		}
	}
	if comma >= 0 {
		return part[:comma] + ",..)"
	}
	return part + ".."
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.shapes, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`+"\n",
		number(x1), number(y1), number(x2), number(y2), class)
}

func (d *drawing) bar(x, y1, y2, half float64, class string) {
	fmt.Fprintf(&d.shapes, `<rect x="%s" y="%s" width="%s" height="%s" rx="2" class="%s"/>`+"\n",
		number(x-half), number(y1), number(2*half), number(max(y2-y1, 1)), class)
}

// loop shades the steps that repeat for ever.
func (d *drawing) loop() {
	n := len(d.run.Steps)
	if d.run.Loop < 0 || d.run.Loop >= n {
		return
	}
	from, to := d.y(d.run.Loop)-rowHeight/2, d.bottom()
	left, right := float64(margin), d.width-margin/2
	fmt.Fprintf(&d.back, `<rect x="%s" y="%s" width="%s" height="%s" class="loop"/>`+"\n",
		number(left), number(from), number(right-left), number(to-from))
	fmt.Fprintf(&d.back, `<path d="M%s %sh-6v%sh6" class="brace"/>`+"\n", number(left), number(from+1), number(to-from-2))
}

// life draws the line of a process, and its sections as bars.
func (d *drawing) life(i int) {
	name, x := d.run.Processes[i], d.x(i)
	d.text(x, d.top-fontSize, "middle", "name", name)
	class := "life"
	if slices.ContainsFunc(d.run.End, func(s scenario.State) bool { return s.Process == name && s.Section == "down" }) {
		class += " never"
	}
	from := d.top - 8
	for k, e := range d.run.Steps { // one line for each of its lives
		switch {
		case e.Process != name:
		case e.Verb == scenario.Crash:
			d.line(x, from, x, d.y(k), class)
			from = -1
		case e.Verb == scenario.Recover:
			from = d.y(k)
		}
	}
	if from >= 0 {
		d.line(x, from, x, d.bottom(), class)
	}
	d.sections(name, x)
}

// sections draws the sections of a user as bars on its line of life.
func (d *drawing) sections(name string, x float64) {
	section, since := "", 0
	change := func(next string, at int) {
		if section != "" && at > since {
			half := 3.0
			if section == "crit" {
				half = 5
			}
			d.bar(x, d.y(since), min(d.y(at), d.bottom()), half, section)
		}
		section, since = next, at
	}
	for k, e := range d.run.Steps {
		if e.Process != name {
			continue
		}
		switch e.Verb {
		case scenario.Try:
			change("try", k)
		case scenario.Exit:
			change("leaving", k)
		case scenario.Crash:
			change("", k)
		}
		for _, f := range e.Effects {
			switch f.Do {
			case scenario.Enters:
				change("crit", k)
			case scenario.Leaves:
				change("", k)
			case scenario.Ejected:
				change("ejected", k)
			}
		}
	}
	change("", len(d.run.Steps))
}

// bottom is where lines of life end.
func (d *drawing) bottom() float64 { return d.y(len(d.run.Steps)) - rowHeight/2 }

// message draws an arrow with its label at the receiving end, in the row of the
// step that receives it. One that does not arrive in the run ends open.
func (d *drawing) message(f flight) {
	from, known := d.column[f.from]
	to, known2 := d.column[f.to]
	if !known || !known2 {
		return
	}
	x1, y1, x2 := d.x(from), d.y(f.sent), d.x(to)
	side := 1.0 // in which direction it goes
	if to < from {
		side = -1
	}
	if f.arrived < 0 {
		x2, y2 := x1+side*stub, y1+rowHeight/2
		fate := ": on its way at the end"
		if f.gone || f.arrived == lost {
			fate = ": never arrives"
		}
		fmt.Fprintf(&d.shapes, `<g><title>%s</title>`, escape(f.from+" to "+f.to+" "+f.text+fate))
		d.line(x1+side*4, y1+2, x2, y2, "arrow open")
		if f.arrived == lost {
			fmt.Fprintf(&d.shapes, `<path d="M%s %sl6 6m0 -6l-6 6" class="fault"/>`, number(x2-3), number(y2-3))
		} else {
			fmt.Fprintf(&d.shapes, `<circle cx="%s" cy="%s" r="3" class="end"/>`, number(x2), number(y2))
		}
		d.shapes.WriteString("</g>\n")
		return
	}
	tip, y2 := x2-side*5, d.y(f.arrived)
	bow := d.bow(f, x1+side*2, y1, tip, y2)
	middle, knee := (x1+side*2+tip)/2, (y1+y2)/2+2*bow
	short := d.short(f.text)
	if short != f.text {
		fmt.Fprintf(&d.shapes, "<g><title>%s</title>\n", escape(f.text))
	}
	if bow == 0 {
		d.line(x1+side*2, y1, tip, y2, "arrow")
	} else {
		fmt.Fprintf(&d.shapes, `<path d="M%s %sQ%s %s %s %s" class="arrow"/>`+"\n",
			number(x1+side*2), number(y1), number(middle), number(knee), number(tip), number(y2))
	}
	angle := math.Atan2(y2-knee, tip-middle) * 180 / math.Pi
	fmt.Fprintf(&d.shapes, `<path d="M0 0l-9 -4v8z" transform="translate(%s %s) rotate(%s)" class="head"/>`+"\n",
		number(tip+side), number(y2), number(angle))
	if short != f.text {
		d.shapes.WriteString("</g>\n")
	}
	anchor := "end"
	if side < 0 {
		anchor = "start"
	}
	d.label(x2-side*aside, y2-4, anchor, "", short)
}

// bow is by how much the arrow of f, from one point to another one, is bent in its middle so that it keeps
// clear of the dots of other steps: as if those passed it on, it would look.
func (d *drawing) bow(f flight, x1, y1, x2, y2 float64) float64 {
	best, nearest := 0.0, 0.0
	for size := 0.0; size <= mostBow; size += 4 {
		for _, bow := range []float64{-size, size} {
			near := math.Inf(1)
			for k, e := range d.run.Steps {
				if column, known := d.column[e.Process]; known && k != f.sent && k != f.arrived {
					near = min(near, distance(x1, y1, x2, y2, bow, d.x(column), d.y(k)))
				}
			}
			if near >= clear {
				return bow
			}
			if near > nearest {
				best, nearest = bow, near
			}
		}
	}
	return best
}

// distance is how near an arrow that is bent by bow comes to a point.
func distance(x1, y1, x2, y2, bow, x, y float64) float64 {
	const parts = 100
	near := math.Inf(1)
	for k := range parts + 1 {
		t := float64(k) / parts
		near = min(near, math.Hypot(x1+t*(x2-x1)-x, y1+t*(y2-y1)+4*t*(1-t)*bow-y))
	}
	return near
}

// mark draws what is no message: what the step was, and what its user was told.
func (d *drawing) mark(i int, e scenario.Event) {
	y := d.y(i)
	d.text(margin+numberWidth-12, y+4, "end", "dim", fmt.Sprint(i+1))
	column, known := d.column[e.Process]
	if !known {
		if e.Process == "" { // the network's
			d.label(margin+numberWidth, y+4, "start", "bad", e.Line)
		}
		return
	}
	x := d.x(column)
	text, class, side := d.words(i, e)
	switch e.Verb {
	case scenario.Amnesia, scenario.Crash, scenario.Lapse:
		fmt.Fprintf(&d.shapes, `<path d="M%s %sl12 12m0 -12l-12 12" class="fault"/>`+"\n", number(x-6), number(y-6))
	default:
		fmt.Fprintf(&d.shapes, `<circle cx="%s" cy="%s" r="3" class="dot"/>`+"\n", number(x), number(y))
	}
	anchor := "start"
	if side < 0 {
		anchor = "end"
	}
	d.label(x+side*10, y+4, anchor, class, text)
}

// words says what step i was and what its user was told, with the class of that text, and on which side
// of the line of life it stands: -1 on the left.
func (d *drawing) words(i int, e scenario.Event) (text, class string, side float64) {
	column, known := d.column[e.Process]
	if !known {
		return "", "", 1
	}
	side = 1
	if from, ok := d.column[e.From]; ok && from > column {
		side = -1 // the label of the arrow stands on the other side
	}
	words := []string{}
	switch e.Verb {
	case scenario.Deliver:
	case scenario.Suspect, scenario.Lapse, scenario.Restore:
		words = append(words, string(e.Verb)+" "+e.Subject)
	case scenario.Read, scenario.Begin, scenario.Write:
		words = append(words, accessText(e))
	case scenario.Timeout:
		words = append(words, d.timer(e.Timer))
	case scenario.Try:
		words = append(words, strings.TrimSpace("try "+e.Wants))
	case scenario.Issue:
		words = append(words, strings.Replace(e.Line, " "+e.Process, "", 1))
	default:
		words = append(words, string(e.Verb))
	}
	switch e.Verb {
	case scenario.Amnesia, scenario.Crash, scenario.Lapse:
		class = "bad"
	}
	for _, f := range e.Effects {
		switch {
		case f.Do == scenario.Enters:
			enters := "enters"
			if f.Group != "" {
				enters += " group " + f.Group
			}
			if f.Token != 0 {
				enters += fmt.Sprintf(" with token %d", f.Token)
			}
			words = append(words, enters)
		case f.Do == scenario.Leaves && e.Verb != scenario.Exit:
			words = append(words, d.leaves(i))
		case f.Do == scenario.Ejected:
			words = append(words, f.Do)
		case f.Do == scenario.Leads:
			words = append(words, f.To+" leads epoch "+d.epoch(f))
		case f.Do == scenario.Executes:
			words = append(words, "executes "+f.Operation)
		case f.Do == scenario.Succeeds, f.Do == scenario.Installs, f.Do == scenario.Proposes:
			words = append(words, f.Do)
		case f.Do == scenario.Wrong:
			words, class = append(words, "wrong"), "bad"
		}
	}
	return strings.Join(words, ", "), class, side
}

// timer names a timer that fires: by its number where the run has several.
func (d *drawing) timer(number uint32) string {
	for _, e := range d.run.Steps {
		if e.Verb == scenario.Timeout && e.Timer != number {
			return fmt.Sprintf("timer %d fires", number)
		}
	}
	return "timer fires"
}

// leaves says what it means that the user of step i is told rem.
func (d *drawing) leaves(i int) string {
	for k := i; k >= 0; k-- {
		e := d.run.Steps[k]
		if e.Process != d.run.Steps[i].Process {
			continue
		}
		if e.Verb == scenario.Exit {
			break
		}
		if e.Verb == scenario.Try {
			return "gives up"
		}
	}
	return "has left"
}

// epoch is the epoch of a leader as states have it, where its number is one of theirs.
func (d *drawing) epoch(f scenario.Effect) string {
	n := uint64(len(d.run.Processes))
	if leader, known := d.column[f.To]; known && f.Epoch%n == uint64(leader) {
		return fmt.Sprintf("%d,%s", f.Epoch/n, f.To)
	}
	return fmt.Sprint(f.Epoch)
}

// foot writes how things stand at the end.
func (d *drawing) foot(reason string) {
	y := d.top + rowHeight*float64(len(d.run.Steps)) + rowHeight
	row := func(class, text string) {
		// A column that fits the widest diagram that is still read without scrolling.
		for text != "" {
			part := text
			if most := int(max(d.width-2*margin, 60*charWidth) / charWidth); utf8.RuneCountInString(text) > most {
				part = string([]rune(text)[:most])
				if space := strings.LastIndexByte(part, ' '); space > 0 {
					part = part[:space]
				}
			}
			text = strings.TrimSpace(text[len(part):])
			d.text(margin, y, "start", class, part)
			y += rowHeight * 0.75
		}
	}
	if reason != "" {
		row("bad name", reason)
		y += rowHeight / 4
	}
	switch n := len(d.run.Steps); {
	case d.run.Loop == n && n > 0:
		row("again", "here it rests for ever")
	case d.run.Loop >= 0 && n > 0:
		row("again", fmt.Sprintf("steps %d to %d repeat for ever", d.run.Loop+1, len(d.run.Steps)))
	}
	for _, s := range d.run.End {
		section := s.Section
		if section == "remainder" {
			section = "outside"
		}
		row("", strings.TrimSpace(fmt.Sprintf("%s  %s  %s", s.Process, section, s.Text)))
	}
	var flying []string
	for _, f := range d.run.InFlight {
		flying = append(flying, f.From+" to "+f.To+" "+d.short(f.Message))
	}
	if len(flying) > 0 {
		row("dim", "on their way: "+strings.Join(flying, "; "))
	}
	if len(d.run.Registers) > 0 {
		row("dim", "registers: "+cellText(d.run.Registers))
	}
	d.end = d.legend(y)
}

// legend says what the bars mean that there are.
func (d *drawing) legend(y float64) float64 {
	x := float64(margin)
	for _, bar := range []struct{ class, text string }{
		{"try", "trying"}, {"crit", "inside"}, {"leaving", "leaving"}, {"ejected", "ejected"},
	} {
		if !strings.Contains(d.shapes.String(), `class="`+bar.class+`"`) {
			continue
		}
		d.bar(x+5, y-10, y+2, 5, bar.class)
		d.text(x+14, y, "start", "dim", bar.text)
		x += 14 + charWidth*float64(len(bar.text)+2)
	}
	if x == margin {
		return y
	}
	return y + rowHeight*0.75
}

func (d *drawing) write(w io.Writer, title, reason string) error {
	b := bufio.NewWriter(w)
	width, height := number(math.Ceil(d.width)), number(math.Ceil(d.end))
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n",
		width, height, width, height)
	label := title
	if label == "" {
		label = "space-time diagram of a run"
	}
	fmt.Fprintf(b, "<title>%s</title>\n", escape(label))
	if reason != "" {
		fmt.Fprintf(b, "<desc>%s</desc>\n", escape(reason))
	}
	fmt.Fprintf(b, "<style>%s</style>\n", style)
	fmt.Fprintf(b, `<rect width="%s" height="%s" class="paper"/>`+"\n", width, height)
	b.WriteString(d.back.String())
	b.WriteString(d.shapes.String())
	b.WriteString(d.labels.String())
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}
