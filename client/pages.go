package client

import (
	"context"
	"iter"

	"github.com/cairnstate/cairn/shared/api"
)

// Entries goes through an execution's history, page by page. After an error
// nothing more comes.
func (c *Client) Entries(ctx context.Context, r *api.HistoryRequest) iter.Seq2[api.HistoryEntry, error] {
	req := *r
	return pages(func() ([]api.HistoryEntry, string, error) {
		reply, err := c.History(ctx, &req)
		if err != nil {
			return nil, "", err
		}
		req.Cursor = reply.Cursor
		return reply.Entries, reply.Cursor, nil
	})
}

// Executions goes through a listing, page by page. After an error nothing more
// comes.
func (c *Client) Executions(ctx context.Context, r *api.ListRequest) iter.Seq2[api.Header, error] {
	req := *r
	return pages(func() ([]api.Header, string, error) {
		reply, err := c.List(ctx, &req)
		if err != nil {
			return nil, "", err
		}
		req.Cursor = reply.Cursor
		return reply.Executions, reply.Cursor, nil
	})
}

// pages yields what next gives until it gives no cursor.
func pages[T any](next func() ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, cursor, err := next()
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if cursor == "" {
				return
			}
		}
	}
}
