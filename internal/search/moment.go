package search

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/when"
)

// moment is when a thing was and in what order with others.
type moment struct {
	day    int32 // in days since 1970, or noDay
	thread uint32
	at     int64
}

const noDay = math.MinInt32

// noThread is the thread of what stands alone.
const noThread = 0

// momentMark begins the moment of a thing, which stands before its first passage: the day, then for a thing of a thread that
// and the moment, with commas between. No text gives this token.
const momentMark = "@"

// mark writes the moment of a thing; "" where it has none.
func (d Doc) mark() string {
	day, dated := when.Parse(d.Day)
	if !dated {
		day, dated = when.First(d.Title)
	}
	if !dated && d.Thread == "" {
		return ""
	}
	m := momentMark
	if dated {
		m += strconv.Itoa(int(day))
	}
	if d.Thread != "" {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(d.Thread))
		m += "," + strconv.FormatUint(uint64(sum.Sum32()), 36) + "," + strconv.FormatInt(d.At, 36)
	}
	return m
}

// momentOf takes the moment from a first passage.
func momentOf(passage string) (m moment, rest string) {
	m.day = noDay
	mark, rest, _ := strings.Cut(passage, " ")
	mark, ok := strings.CutPrefix(mark, momentMark)
	if !ok {
		return m, passage
	}
	part := strings.Split(mark, ",")
	if n, err := strconv.ParseInt(part[0], 10, 32); err == nil {
		m.day = int32(n)
	}
	if len(part) == 3 {
		thread, err := strconv.ParseUint(part[1], 36, 32)
		at, err2 := strconv.ParseInt(part[2], 36, 64)
		if err == nil && err2 == nil {
			m.thread, m.at = uint32(thread), at
		}
	}
	return m, rest
}

// threads are the living things of each thread in their order.
type threads map[uint32][]uint32

// inThread compares the places of two things of a thread in it.
func (x *index) inThread(a, b uint32) int {
	return cmp.Or(cmp.Compare(x.things[a].at, x.things[b].at), strings.Compare(x.things[a].id, x.things[b].id))
}

// join puts a thing into its thread.
func (x *index) join(n uint32) {
	t := x.things[n].thread
	if t == noThread {
		return
	}
	list := x.threads[t]
	i, _ := slices.BinarySearchFunc(list, n, x.inThread)
	x.threads[t] = slices.Insert(list, i, n)
}

// leave takes a thing out of its thread.
func (x *index) leave(n uint32) {
	t := x.things[n].thread
	if t == noThread {
		return
	}
	if i, ok := slices.BinarySearchFunc(x.threads[t], n, x.inThread); ok {
		x.threads[t] = slices.Delete(x.threads[t], i, i+1)
	}
}

// occasion is how far apart in time, in microseconds, what belongs together may lie.
const occasion = 60 * 60 * 1e6

// around gives the things just before and after a thing among those that count, those of them that there are.
func (x *index) around(n uint32, counts func(m uint32) bool) (near []uint32) {
	if x.things[n].thread == noThread {
		return nil
	}
	list := x.threads[x.things[n].thread]
	at, ok := slices.BinarySearchFunc(list, n, x.inThread)
	if !ok {
		return nil
	}
	for i := at - 1; i >= 0 && x.things[n].at-x.things[list[i]].at <= occasion; i-- {
		if counts(list[i]) {
			near = append(near, list[i])
			break
		}
	}
	for i := at + 1; i < len(list) && x.things[list[i]].at-x.things[n].at <= occasion; i++ {
		if counts(list[i]) {
			near = append(near, list[i])
			break
		}
	}
	return near
}
