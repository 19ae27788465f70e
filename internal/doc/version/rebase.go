package version

import (
	"strings"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Conflict is a node that keeps a patch from being applied to a newer version.
type Conflict struct {
	NodeID string `json:"node_id"`
	Why    string `json:"why"`
}

// Rebase applies a patch made against base to current, a later version of the same document, where the nodes it touches are
// disjoint from those changed in between: what it edits or moves wasn't edited, moved or removed, what it takes away has
// nothing new or changed in it, and the places it names are still there. Else the fault is of kind Conflict and has
// "conflicts", a []Conflict. A patch that is wrong against base is the caller's fault, as from Apply.
func Rebase(base, current *doc.Doc, patch doc.Patch, newID func() string) (*doc.Result, error) {
	on, err := base.Apply(patch, newID)
	if err != nil {
		return nil, err
	}
	if base.SameContent(current) {
		on.Doc, err = on.Doc.WithTitle(current.Title())
		return on, err
	}
	if err := refused(conflicts(base, current, on.Ops)); err != nil {
		return nil, err
	}
	res, err := current.Apply(resolved(base, patch), newID)
	if err != nil {
		f := fault.From(err)
		return nil, fault.New(fault.Conflict, "the patch no longer fits the document: %s", f.Message).With("conflicts", []Conflict{})
	}
	return res, nil
}

// resolved puts node_ids in the place of the base's agent_ids.
func resolved(base *doc.Doc, patch doc.Patch) doc.Patch {
	out := make(doc.Patch, len(patch))
	for i, op := range patch {
		for _, id := range []*string{&op.NodeID, &op.Before, &op.After, &op.Into} {
			if n, err := base.Lookup(*id, ""); strings.HasPrefix(*id, "@") && err == nil {
				*id = n.ID
			}
		}
		out[i] = op
	}
	return out
}

func conflicts(base, current *doc.Doc, ops []doc.Touch) (list []Conflict) {
	why := map[string]string{}
	diff := Diff(base, current)
	became := map[string]string{}
	for _, e := range diff.Edited {
		why[e.After.ID] = "was edited"
		if e.Before.Type != e.After.Type {
			became[e.After.ID] = "became a " + e.After.Type
		}
	}
	for _, n := range diff.Moved {
		why[n.ID] = "was moved"
	}
	for _, n := range diff.Removed {
		why[n.ID] = "was removed"
	}
	said := map[string]bool{}
	say := func(id, w string) {
		if !said[id] {
			said[id] = true
			list = append(list, Conflict{id, w})
		}
	}
	shuffled := map[string]bool{} // nodes whose children came into another order, whichever of them were moved
	for _, up := range diff.shuffled {
		shuffled[up] = true
	}
	for _, t := range ops {
		for _, id := range t.Edits {
			if t.Op == "move" && len(shuffled) > 0 && why[id] == "" && shuffled[holder(base, id)] {
				say(id, "stands among nodes that were put into another order")
			}
		}
		for _, id := range t.Anchors {
			if why[id] == "was removed" {
				say(id, why[id])
			} else if w := became[id]; w != "" {
				say(id, w)
			}
		}
		taken := map[string]bool{}
		for _, id := range t.Removes {
			taken[id] = true
		}
		for _, id := range append(t.Edits[:len(t.Edits):len(t.Edits)], t.Removes...) {
			if w := why[id]; w != "" {
				say(id, w)
			}
			if now, ok := diff.is[id]; ok && taken[id] {
				for _, c := range blocks(now.n) {
					if p, changed := diff.is[c.ID]; changed && diff.was[c.ID].up != p.up {
						say(id, "got "+c.ID+" put into it")
					}
				}
			}
		}
	}
	return list
}

// holder gives the id of what a node stands in, "" for the document.
func holder(d *doc.Doc, id string) (up string) {
	var look func(in string, nodes []*doc.Node) bool
	look = func(in string, nodes []*doc.Node) bool {
		for _, n := range nodes {
			if n.ID == id {
				up = in
				return true
			}
			if look(n.ID, blocks(n)) {
				return true
			}
		}
		return false
	}
	look("", d.Content())
	return up
}
