package app_test

import (
	"fmt"
	"slices"
	"testing"

	"cairn/internal/account"
	"cairn/internal/apptest"
)

// What is in a heap is told as it stands: nothing that is done, superseded, proposed or in the trash.
func TestHeapSaysWhatItHolds(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		holds := func(heap string) string {
			var out struct {
				Heap account.Heap
			}
			apptest.Decode(t, a.Call(t, me, "get_heap", `{"heap":"`+heap+`"}`), &out)
			var mine struct{ Heaps []account.Heap }
			apptest.Decode(t, a.Call(t, me, "get_account", `{"holds":true}`), &mine)
			if i := slices.IndexFunc(mine.Heaps, func(h account.Heap) bool { return h.Name == heap }); fmt.Sprint(mine.Heaps[i].Holds) != fmt.Sprint(out.Heap.Holds) {
				t.Errorf("the account says that %s holds %v", heap, mine.Heaps[i].Holds)
			}
			return fmt.Sprint(out.Heap.Holds)
		}
		if got := holds("Personal"); got != "[{task 0} {memory 0} {note 0}]" {
			t.Errorf("a fresh heap holds %s", got)
		}
		made := func(tool, args string) string {
			var out struct {
				ID string `json:"id"`
			}
			apptest.Decode(t, a.Call(t, me, tool, args), &out)
			return out.ID
		}
		made("create_personal_task", `{"name":"Oil the hinges"}`)
		a.Call(t, me, "complete_task", `{"task_id":"`+made("create_personal_task", `{"name":"Done"}`)+`"}`)
		a.Call(t, me, "capture_context", `{"heap":"Personal","objects":[{"kind":"preference","statement":"Prefers tea in the morning"},{"kind":"learning","statement":"Hinges want oil twice a year"}]}`)
		a.Call(t, me, "capture_context", `{"heap":"Personal","propose":true,"objects":[{"kind":"preference","statement":"Likes long walks by the river"}]}`)
		made("create_block", `{"heap":"Personal","type":"note","title":"Workshop"}`)
		a.Call(t, me, "delete_block", `{"block_id":"`+made("create_block", `{"heap":"Personal","type":"note","title":"Gone"}`)+`"}`)
		if got := holds("Personal"); got != "[{task 1} {memory 2} {note 1}]" {
			t.Errorf("it holds %s", got)
		}
		if got := holds("Work"); got != "[{task 0} {memory 0} {note 0}]" {
			t.Errorf("the other heap holds %s", got)
		}
	})
}
