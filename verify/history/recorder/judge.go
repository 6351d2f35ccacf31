package recorder

import (
	"os"

	"github.com/poundlock/poundlock/verify/history"
)

// Judge judges the files of several recorders as one history, as poundlock-lab judge does. Where
// the headers say how far clocks may be off, bounds.Slack follows from them.
func Judge(bounds history.Bounds, paths ...string) (*history.Report, error) {
	var files []*history.Reader
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r, err := history.NewReader(path, file)
		if err != nil {
			return nil, err
		}
		files = append(files, r)
	}
	bounds.Slack = max(bounds.Slack, history.Slack(files))
	return history.Read(files, bounds)
}
