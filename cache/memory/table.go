package memory

import "math"

// never is the deadline of what does not expire.
const never = math.MaxInt64

// A name is a key and its hash.
type name struct {
	key  string
	hash uint64
}

// A node is one key of a table and what is stored there.
type node[V any] struct {
	name
	deadline int64 // expired from then on
	v        V
	pos      int // its place in the table's queue, or unqueued
}

const unqueued = -1

// A table is a map whose keys expire. Expiry is lazy: get does not see an expired
// key, and reclaim removes a few of them, the longest expired first. It is not safe
// for concurrent use, and instants are passed in.
//
// The hash of a key is at hand already, and a map of numbers is the faster and the smaller
// one. Of keys that have one hash, one is in it, and the others, which are not to be
// expected, are beside it.
type table[V any] struct {
	nodes  map[uint64]*node[V] // by the hashes
	others map[string]*node[V] // those whose hash was taken when they came
	queue  []due[V]            // a heap, the earliest first; of every key that has or had a deadline
	peak   int                 // the most hashes since nodes was made
}

// A due says when to look at a node: not after its deadline, and perhaps before,
// for a deadline is extended without touching the queue.
type due[V any] struct {
	at   int64
	node *node[V]
}

// find returns the node of a key, or nil if there is none.
func (t *table[V]) find(k name) *node[V] {
	if n := t.nodes[k.hash]; n != nil && n.key == k.key {
		return n
	}
	return t.others[k.key]
}

// get returns the node of a key, or nil if there is none or it has expired.
func (t *table[V]) get(k name, now int64) *node[V] {
	n := t.find(k)
	if n == nil || n.deadline <= now {
		return nil
	}
	return n
}

// add makes a node for a key, in the place of any that is there.
func (t *table[V]) add(k name, deadline int64) *node[V] {
	if n := t.find(k); n != nil {
		t.remove(n)
	}
	n := &node[V]{name: name{own(k.key), k.hash}, pos: unqueued}
	switch {
	case t.nodes[k.hash] == nil:
		put(&t.nodes, k.hash, n)
		t.peak = max(t.peak, len(t.nodes))
	default:
		put(&t.others, n.key, n)
	}
	t.expire(n, deadline)
	return n
}

// put puts a node into a map, which is made for the first one.
func put[K comparable, V any](m *map[K]*node[V], key K, n *node[V]) {
	if *m == nil {
		*m = make(map[K]*node[V])
	}
	(*m)[key] = n
}

// len returns how many nodes there are.
func (t *table[V]) len() int { return len(t.nodes) + len(t.others) }

// extend makes the deadline of a node a later one, if it is. The queue need not know: it
// looks at a node too early then, and finds out.
func (n *node[V]) extend(deadline int64) { n.deadline = max(n.deadline, deadline) }

// expire sets the deadline of a node.
func (t *table[V]) expire(n *node[V], deadline int64) {
	n.deadline = deadline
	switch {
	case n.pos != unqueued:
		if deadline < t.queue[n.pos].at {
			t.queue[n.pos].at = deadline
			t.up(n.pos)
		}
	case deadline != never:
		n.pos = len(t.queue)
		t.queue = append(t.queue, due[V]{deadline, n})
		t.up(n.pos)
	}
}

// remove removes a node.
func (t *table[V]) remove(n *node[V]) {
	if n.pos != unqueued {
		t.unqueue(n)
	}
	if t.nodes[n.hash] == n {
		delete(t.nodes, n.hash)
		t.shrink()
	} else {
		delete(t.others, n.key)
	}
}

// reclaim looks at no more than the given number of nodes that are due, and removes
// those that have expired.
func (t *table[V]) reclaim(now int64, most int) {
	for ; most > 0 && len(t.queue) > 0 && t.queue[0].at <= now; most-- {
		if n := t.queue[0].node; n.deadline <= now {
			t.remove(n)
		} else {
			t.queue[0].at = n.deadline
			t.down(0)
		}
	}
}

// shrink makes the map anew when it is nearly empty, since a map never gives memory
// back. The removals that led here pay for it.
func (t *table[V]) shrink() {
	const worthwhile = 9 // a map of up to eight keys is as small as any
	if t.peak < worthwhile || len(t.nodes) > t.peak/4 {
		return
	}
	nodes := make(map[uint64]*node[V], len(t.nodes))
	for hash, n := range t.nodes {
		nodes[hash] = n
	}
	t.nodes, t.peak = nodes, len(nodes)
	t.queue = append(make([]due[V], 0, 2*len(t.queue)), t.queue...)
}

// unqueue takes a node out of the queue.
func (t *table[V]) unqueue(n *node[V]) {
	i, last := n.pos, len(t.queue)-1
	t.queue[i] = t.queue[last]
	t.queue[i].node.pos = i
	t.queue[last] = due[V]{}
	t.queue = t.queue[:last]
	n.pos = unqueued
	if i < last {
		t.down(i)
		t.up(i)
	}
}

func (t *table[V]) up(i int) {
	item := t.queue[i]
	for i > 0 {
		parent := (i - 1) / 2
		if t.queue[parent].at <= item.at {
			break
		}
		t.place(i, t.queue[parent])
		i = parent
	}
	t.place(i, item)
}

func (t *table[V]) down(i int) {
	item := t.queue[i]
	for {
		child := 2*i + 1
		if child >= len(t.queue) {
			break
		}
		if right := child + 1; right < len(t.queue) && t.queue[right].at < t.queue[child].at {
			child = right
		}
		if item.at <= t.queue[child].at {
			break
		}
		t.place(i, t.queue[child])
		i = child
	}
	t.place(i, item)
}

func (t *table[V]) place(i int, item due[V]) {
	t.queue[i] = item
	item.node.pos = i
}
