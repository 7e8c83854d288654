package model

import (
	"fmt"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// The journals of a model are real folds: a state of a world names one by its
// number in a book, and journals with the same entries have the same number.

// journal is the number of a journal up to a version; 0: there is none.
type journal int32

// book makes and keeps journals.
type book struct {
	folds []*execution.State
	asked map[string]answer
}

// answer is what the rules said about a change.
type answer struct {
	next     journal
	proposal *execution.Proposal
	err      error
}

func newBook() *book { return &book{folds: []*execution.State{nil}, asked: map[string]answer{}} }

// at is the fold of a journal, nil for none.
func (b *book) at(j journal) *execution.State { return b.folds[j] }

// version is that of the journal's tip, 0 for none.
func (b *book) version(j journal) int64 {
	if j == 0 {
		return 0
	}
	return b.folds[j].Version
}

// propose asks the product's rules about a change at a journal, once; what names
// the change among all those of the model. It gives the journal with the entry, or
// the replay or refusal.
func (b *book) propose(j journal, what string, ref execution.Ref, c *execution.Change, now int64) (journal, *execution.Proposal, error) {
	key := fmt.Sprintf("%d %d %s", j, now, what)
	a, ok := b.asked[key]
	if !ok {
		a.proposal, a.err = execution.Propose(b.at(j), ref, c, execution.Environment{Now: now})
		if a.err == nil && a.proposal.Replay == nil {
			a.next = b.add(a.proposal.State)
		}
		b.asked[key] = a
	}
	return a.next, a.proposal, a.err
}

func (b *book) add(s *execution.State) journal {
	b.folds = append(b.folds, s)
	return journal(len(b.folds) - 1)
}

// create begins a journal; a mistake in a model panics.
func (b *book) create(ref execution.Ref, c *execution.Change) journal {
	j, _, err := b.propose(0, string(ref.Execution), ref, c, 1)
	if err != nil {
		panic(err)
	}
	return j
}

// named is a request's identity in a model.
func named(name string) execution.RequestID {
	r := execution.RequestID{ID: name}
	copy(r.Hash[:], name)
	copy(r.Digest[:], name)
	return r
}

var emptyState = jsonx.MustParse("{}")
