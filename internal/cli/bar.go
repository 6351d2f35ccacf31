package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Bar is shown on standard error once something has taken two seconds. Finish removes it.
type Bar struct {
	what  string
	began time.Time
	bar   *progressbar.ProgressBar // nil: not shown yet
}

// NewBar is a bar for what begins now.
func NewBar(what string) *Bar { return &Bar{what: what, began: time.Now()} }

// Show says how far it is.
func (b *Bar) Show(done, total int) {
	if b.bar == nil && time.Since(b.began) > 2*time.Second {
		b.bar = progressbar.NewOptions(total, progressbar.OptionSetDescription(b.what),
			progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	if b.bar != nil {
		_ = b.bar.Set(done) // only for the eye
	}
}

// Describe says what stands before the bar from now on.
func (b *Bar) Describe(what string) {
	if b.what = what; b.bar != nil {
		b.bar.Describe(what)
	}
}

// Finish removes the bar.
func (b *Bar) Finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
