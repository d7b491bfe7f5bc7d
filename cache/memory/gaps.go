package memory

import "slices"

// gaps are the IDs that are missing in a series, since their slots were given back.
// The IDs of the others follow from where they are, so they need not be stored. A
// series without gaps has a nil one.
//
// Of the runs of missing IDs, the first stands for all that is before the first hit.
type gaps []gap

// A gap is a run of missing IDs.
type gap struct {
	end     uint64 // the first ID after it
	missing uint64 // how many are missing before end, earlier gaps included; differences count
}

// index returns the index in a series of n hits of the one with the ID, if there is
// one. The next ID to be given is next.
func (g gaps) index(id, next uint64, n int) (i int, ok bool) {
	behind := next - id // how many IDs are not before this one
	if len(g) > 0 {
		k := g.before(id)
		if k < 0 || k+1 < len(g) && id >= g.start(k+1) {
			return 0, false
		}
		behind -= g[len(g)-1].missing - g[k].missing
	}
	if id >= next || behind > uint64(n) {
		return 0, false
	}
	return n - int(behind), true
}

// add makes an ID that is there a missing one. It costs the same for the last one of
// a series however many there are.
func (g gaps) add(id uint64) gaps {
	if len(g) == 0 {
		g = append(g, gap{})
	}
	k := g.before(id)
	meetsNext := k+1 < len(g) && g.start(k+1) == id+1
	for i := k + 1; i < len(g); i++ {
		g[i].missing++
	}
	switch meetsLast := g[k].end == id; {
	case meetsLast && meetsNext:
		return slices.Delete(g, k, k+1)
	case meetsLast:
		g[k] = gap{id + 1, g[k].missing + 1}
	case !meetsNext:
		return slices.Insert(g, k+1, gap{id + 1, g[k].missing + 1})
	}
	return g
}

// trim forgets the gaps that are before the first of n hits.
func (g gaps) trim(next uint64, n int) gaps {
	for len(g) > 1 && next-g[1].end-(g[len(g)-1].missing-g[1].missing) >= uint64(n) {
		g = g[1:]
	}
	if len(g) == 1 {
		return nil
	}
	return g
}

// before returns the index of the last gap that ends at the ID or before it, or -1.
func (g gaps) before(id uint64) int {
	// From the back, where slots are given back.
	k := gallop(0, len(g), func(i int) bool { return g[len(g)-1-i].end > id })
	return len(g) - 1 - k
}

// start returns the first ID of a gap that is not the first.
func (g gaps) start(k int) uint64 { return g[k].end - (g[k].missing - g[k-1].missing) }
