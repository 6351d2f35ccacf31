package server

import "context"

// ask is what every server knows, its locks among that.
func ask(ctx context.Context, c AskConfig) ([]Answer, error) {
	o, err := Observe(c)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	answers := o.Sessions(ctx)
	o.Locks(ctx, answers, LockQuery{}, func(same []*Lock) bool {
		for i, l := range same {
			if l != nil {
				answers[i].Status.Locks = append(answers[i].Status.Locks, *l)
			}
		}
		return true
	})
	return answers, nil
}
