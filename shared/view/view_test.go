package view

import (
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// What a view says about where an execution stands.
func TestStandings(t *testing.T) {
	t.Parallel()
	b := &Builder{}
	show := func(s *execution.State, head *journal.Head, now int64, o Options) *api.View {
		var v api.View
		b.standings(&v, &journal.Handle{State: s, Head: head}, now, o)
		return &v
	}
	for expires, want := range map[int64]bool{0: false, 11: false, 10: true} {
		v := show(&execution.State{Permissions: &execution.Permissions{Principal: "p", ExpiresAt: expires}}, nil, 10, Options{})
		if v.PermissionsExpired != want || v.Permissions.Principal != "p" {
			t.Errorf("expires at %d: %+v", expires, v)
		}
	}
	if v := show(&execution.State{}, nil, 10, Options{}); v.Permissions != nil || v.PermissionsExpired || v.Wait != nil || v.Parent != nil || v.Holds != nil {
		t.Errorf("%+v", v)
	}
	resume := jsonx.MustParse(`1`)
	if show(&execution.State{Resume: resume}, nil, 10, Options{}).Resume != nil || show(&execution.State{Resume: resume}, nil, 10, Options{Owner: true}).Resume != resume {
		t.Error("a resume value is its owner's")
	}
	wait := &execution.State{Wait: &execution.Wait{Signals: []string{"go"}}, Parent: &execution.Parent{Execution: "p"}, ForkedFrom: &execution.ForkPoint{Execution: "f"}}
	if v := show(wait, nil, 10, Options{}); v.Wait.DueAt != nil || v.Parent.Execution != "p" {
		t.Errorf("%+v", v)
	}
	if v := show(wait, &journal.Head{DueAt: 7, Holds: []string{"h"}, ExpiresAt: 9}, 10, Options{}); v.Wait.DueAt == nil || len(v.Holds) != 1 || v.ExpiresAt == nil {
		t.Errorf("%+v", v)
	}
}

// Who owns it and for how long is told where it is known.
func TestStanding(t *testing.T) {
	t.Parallel()
	b := &Builder{Journal: journal.New(journal.Options{Elapsed: func() time.Duration { return 0 }})}
	for name, tt := range map[string]struct {
		s     execution.State
		head  *journal.Head
		lease bool
		want  execution.Status
	}{
		"nobody":               {execution.State{Status: execution.StatusRunning}, &journal.Head{Status: execution.StatusRunning}, false, execution.StatusRunning},
		"an owner":             {execution.State{Status: execution.StatusRunning, Owner: "w"}, &journal.Head{Status: execution.StatusRunning}, true, execution.StatusRunning},
		"an owner's own entry": {execution.State{Status: execution.StatusRunning, Owner: "w", TipByOwner: true}, nil, true, execution.StatusRunning},
		"nobody knows":         {execution.State{Status: execution.StatusRunning, Owner: "w"}, nil, false, execution.StatusRunning},
		"of a newer version":   {execution.State{Status: execution.StatusRunning}, &journal.Head{Status: "dreaming"}, false, "dreaming"},
		"the head lags":        {execution.State{Status: execution.StatusWaiting}, &journal.Head{Status: execution.StatusRunning}, false, execution.StatusWaiting},
	} {
		if got := b.Standing(&journal.Handle{State: &tt.s, Head: tt.head}); (got.LeaseRemainingMS != nil) != tt.lease || got.Status != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
