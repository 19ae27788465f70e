package chronicle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// everyone reads the people that the caller knows of in these heaps, by name.
func everyone(c *who.Caller, query rowsQuery, heaps []who.Heap) ([]*person, error) {
	args := db.Args{}
	all, err := readAll(query, newPerson, `heap IN `+args.List(who.IDs(heaps))+` AND trashed_at IS NULL`, args...)
	all = slices.DeleteFunc(all, func(p *person) bool { return !sees(c, p) })
	slices.SortFunc(all, func(a, b *person) int {
		return cmp.Or(cmp.Compare(who.Fold(a.Name), who.Fold(b.Name)), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// named tells whether a name, folded, is one of a person's.
func (p *person) named(folded string) bool {
	return p.Slug == folded || who.Fold(p.Name) == folded || slices.ContainsFunc(p.Aliases, func(a string) bool { return who.Fold(a) == folded })
}

// match finds people by name, alias or slug, without regard to case, those of the heap before others. Nobody is made of a name.
func match(c *who.Caller, query rowsQuery, heap string, names []string) (ids []string, p People, err error) {
	ids, p = []string{}, People{Unknown: []string{}}
	if len(names) == 0 {
		return ids, p, nil
	}
	all, err := everyone(c, query, c.Heaps)
	if err != nil {
		return nil, p, err
	}
	for _, n := range names {
		var here, there []*person
		for _, one := range all {
			if !one.named(who.Fold(n)) {
				continue
			}
			if one.Heap == heap {
				here = append(here, one)
			} else {
				there = append(there, one)
			}
		}
		if len(here) == 0 {
			here = there
		}
		switch {
		case len(here) == 0:
			p.Unknown = append(p.Unknown, n)
		case len(here) == 1:
			ids = append(ids, here[0].ID)
		default:
			a := Ambiguous{Name: n}
			for _, one := range here {
				a.Slugs = append(a.Slugs, one.Slug)
			}
			p.Ambiguous = append(p.Ambiguous, a)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), p, nil
}

type personIn struct {
	ID      string    `json:"id" jsonschema:"of the person to change, or slug" rule:"uuid,max=300"`
	Slug    string    `json:"slug" rule:"min=1,max=300"`
	Name    *string   `json:"name" jsonschema:"required for a new person; one who has this name already is given back as they are" rule:"min=1,max=300"`
	Aliases *[]string `json:"aliases" jsonschema:"other names; replaces them" rule:"max=50"`
	Private *bool     `json:"private" jsonschema:"no agent knows of them"`
	Heap    string    `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Person is somebody the owner knows, as callers see them.
type Person struct {
	ID        string   `json:"id"`
	Slug      string   `json:"slug"`
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases"`
	Private   bool     `json:"private"`
	Heap      string   `json:"heap"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
}

func (p *person) shown() Person {
	return Person{p.ID, p.Slug, p.Name, append([]string{}, p.Aliases...), bool(p.Private), p.Heap, op.Stamp(p.CreatedAt), op.Stamp(p.UpdatedAt)}
}

type personOut struct {
	kept
	Person Person `json:"person"`
}

func (s *Service) person(ctx context.Context, in personIn) (personOut, error) {
	c := who.From(ctx)
	if in.Aliases != nil {
		if err := checkNames("aliases", *in.Aliases); err != nil {
			return personOut{}, err
		}
	}
	id := in.ID
	if id == "" && in.Slug != "" {
		p, err := s.findPerson(ctx, in.Slug, in.Heap)
		if err != nil {
			return personOut{}, err
		}
		id = p.ID
	}
	if id == "" {
		if in.Name == nil {
			return personOut{}, fault.Bad("name", "is required for a new person and must be a non-empty string")
		}
		h, err := c.Target(in.Heap, nil)
		if err != nil {
			return personOut{}, err
		}
		all, err := everyone(c, s.query(ctx), []who.Heap{h})
		if err != nil {
			return personOut{}, err
		}
		if i := slices.IndexFunc(all, func(p *person) bool { return p.named(who.Fold(*in.Name)) }); i >= 0 {
			return personOut{kept{ID: all[i].ID, Result: "existing"}, all[i].shown()}, nil
		}
	}
	p, one, err := keep(ctx, s, id, in.Heap, newPerson, func(tx *db.Tx, p *person) (err error) {
		if in.Name != nil {
			p.Name = strings.TrimSpace(*in.Name)
		}
		if in.Aliases != nil {
			p.Aliases = texts{}
			for _, a := range *in.Aliases {
				p.Aliases = append(p.Aliases, strings.TrimSpace(a))
			}
		}
		if in.Private != nil {
			p.Private = yes(*in.Private)
		}
		if p.Slug == "" {
			p.Slug, err = freeSlug(tx, p.Heap, slug(p.Name))
		}
		return err
	})
	if err != nil {
		return personOut{}, err
	}
	return personOut{one, p.shown()}, nil
}

// slug makes a name fit for an address: letters and digits, without accents, and hyphens.
func slug(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range norm.NFD.String(who.Fold(name)) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		case !unicode.IsMark(r):
			gap = true
		}
	}
	s := norm.NFC.String(b.String())
	if r := []rune(s); len(r) > 80 {
		s = strings.TrimRight(string(r[:80]), "-")
	}
	if s == "" {
		return "person"
	}
	return s
}

// freeSlug adds a number to a slug that the heap has already.
func freeSlug(tx *db.Tx, heap, slug string) (string, error) {
	for n := 1; ; n++ {
		try := slug
		if n > 1 {
			try = fmt.Sprintf("%s-%d", slug, n)
		}
		var id string
		err := tx.One(`SELECT id FROM person WHERE heap = $1 AND slug = $2`, []any{heap, try}, &id)
		if db.IsNone(err) {
			return try, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// findPerson finds a person that the caller knows of by slug, else by name or alias.
func (s *Service) findPerson(ctx context.Context, name, heap string) (*person, error) {
	c := who.From(ctx)
	heaps, err := c.Readable(heap)
	if err != nil {
		return nil, err
	}
	all, err := everyone(c, s.query(ctx), heaps)
	if err != nil {
		return nil, err
	}
	var found []*person
	for _, is := range []func(p *person) bool{func(p *person) bool { return p.Slug == name || p.ID == strings.ToLower(name) }, func(p *person) bool { return p.named(who.Fold(name)) }} {
		for _, p := range all {
			if is(p) {
				found = append(found, p)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch len(found) {
	case 0:
		return nil, fault.New(fault.NotFound, "there is no person %q", name)
	case 1:
		return found[0], nil
	}
	candidates := make([]map[string]string, len(found))
	for i, p := range found {
		h, _ := c.ByID(p.Heap)
		candidates[i] = map[string]string{"id": p.ID, "slug": p.Slug, "name": p.Name, "heap": h.Name}
	}
	return nil, fault.New(fault.Conflict, "%d people are called %q: give the id or slug of one, or the heap", len(found), name).With("candidates", candidates)
}

// Names gives the name and aliases of a person that the caller knows of, by id, slug, name or alias.
func (s *Service) Names(ctx context.Context, who, heap string) ([]string, error) {
	p, err := s.findPerson(ctx, who, heap)
	if err != nil {
		return nil, err
	}
	return append([]string{p.Name}, p.Aliases...), nil
}

type listIn struct {
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=300"`
}

type peopleOut struct {
	Count      int      `json:"count"`
	People     []Person `json:"people"`
	NextCursor *string  `json:"next_cursor,omitempty"`
}

func (s *Service) listPeople(ctx context.Context, in listIn) (peopleOut, error) {
	out, c := peopleOut{People: []Person{}}, who.From(ctx)
	heaps, err := c.Readable(in.Heap)
	if err != nil {
		return out, err
	}
	all, err := everyone(c, s.query(ctx), heaps)
	if err != nil {
		return out, err
	}
	out.People, out.NextCursor, err = pageOf(all, in, (*person).shown, func(p *person) int { return op.Weight(p.Name + strings.Join(p.Aliases, `""`)) })
	out.Count = len(out.People)
	return out, err
}

// pageOf cuts a page out of a list that is whole in memory.
func pageOf[T, V any](all []T, in listIn, shown func(T) V, weight func(T) int) ([]V, *string, error) {
	from, err := offset(in.Cursor)
	rows, p := []V{}, op.NewPage(in.Limit)
	for i := from; i < len(all); i++ {
		if !p.Fits(len(rows), weight(all[i])+400) {
			return rows, op.Cursor(strconv.Itoa(i)), err
		}
		rows = append(rows, shown(all[i]))
	}
	return rows, nil, err
}

type getPersonIn struct {
	Person string `json:"person" jsonschema:"slug, id, name or alias" rule:"required,min=1,max=300"`
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type getPersonOut struct {
	Person   Person    `json:"person"`
	Episodes []Episode `json:"episodes"` // the latest; get_timeline has all
}

// latest is how many episodes stand beside a person.
const latest = 20

func (s *Service) getPerson(ctx context.Context, in getPersonIn) (getPersonOut, error) {
	p, err := s.findPerson(ctx, in.Person, in.Heap)
	if err != nil {
		return getPersonOut{}, err
	}
	c := who.From(ctx)
	list, err := s.events(ctx, span{heaps: c.Heaps, since: beginning, below: end, person: p.ID}, latest)
	return getPersonOut{p.shown(), list}, err
}
