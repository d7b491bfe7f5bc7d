-- Takes the next slots of a sliding window, or says how far away they are.
--
-- KEYS[1]  the series: a sorted set with a member per hit, whose score is the hit's
--          instant in microseconds
-- ARGV     limit, window (us), how long ago (us) the driver may have sent this before ('0'
--          if it has not); then, for each hit that is asked for, in order of arrival:
--          weight, longest wait (us), identifier
--
-- Answers three numbers for each: 1, wait, instant for a slot taken, 0, wait, 0 for one that
-- is too far away, and -1 three times for a series with what is no hit in it. They are what
-- one call for each would have been answered at this instant; one that is refused leaves
-- nothing behind.
--
-- While all hits weigh 1, a member is the hit's identifier, of 11 bytes, and the hit that
-- has to leave before the next can come is found by its rank. From the first heavier hit
-- on, until the series has run empty, a member also says what the hits before it weighed
-- beyond 1 each, all together, and what this one weighs: '~', two numbers of 7 bytes, the
-- identifier. With that and a rank, any member knows the weight of all from it to the
-- end, and the one that has to leave is found by bisection. Hits are only ever added at
-- the end: of one instant, the plain members sort before the others ('~' is greater than
-- any digit of an identifier) and these as they came.
--
-- Time is divided into steps of an eighth of a window. Only the first hit of a step sets the
-- expiry, to one that does for all that are to come in the step, and surely discards what
-- has left the window; a hit that finds its step begun by the one before it leaves the expiry
-- alone, and discards what has left in one of sixteen instants, or the first of the next
-- step would keep the server for long after very many. (One series serves one width of
-- window, or the steps would not be the same for all.) What has left and is still there is in
-- nobody's way: it is too old to be waited for.
--
-- Numbers are whole and below 2^53 (one that is not, is no hit), so neither a double
-- nor the 17 digits in which they are handed on lose anything, and none has an exponent.
-- ('%d' has 32 bits on some servers, which will do for a rank, and for no instant.)

local key, limit, window, sent = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local asked = (#ARGV - 3) / 3

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local last = redis.call('ZRANGE', key, '-1', '-1', 'WITHSCORES')
local previous = tonumber(last[2]) -- the instant of the last hit, if there is one
local heavy = false                -- whether it says what was before it
local recorded                     -- instants by identifier, of what was sent before
if previous then
  heavy = #last[1] == 26
  if not heavy and #last[1] ~= 11 or previous % 1 ~= 0 or previous >= 2 ^ 53 then
    local answers = {}
    for i = 1, 3 * asked do answers[i] = -1 end
    return answers
  end
  if sent ~= '0' then
    recorded = {}
    for i = 6, #ARGV, 3 do recorded[ARGV[i]] = redis.call('ZSCORE', key, ARGV[i]) or nil end
    local rank = heavy and redis.call('ZCARD', key) or 0
    while rank > 0 do
      rank = rank - 1
      local hit = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
      if hit[2] + sent < now then break end -- asked for before this was first sent, as all before it
      recorded[string.sub(hit[1], -11)] = hit[2]
    end
  end
  -- If all have left, none matters, and all are discarded below.
  if previous + window <= now then previous, heavy = nil, false end
end

local at = previous and previous > now and previous or now -- no slot is before the last hit
local answers = { 0, 0, 0 } -- of the size that one hit needs
local n = 0                 -- how many are taken
local added                 -- their instants and members, by turns

-- For plain hits: those that they may have to wait for, in one reading.
local leaving, farthest
-- From the first heavier one on: how many hits were here, and how many of them have left;
-- of all that have been looked at and all that are new, by rank, the instants and what was
-- before them beyond 1 each; what that is after the last one, once a hit is to say so.
local count, gone, instants, befores, excess

for i = 4, #ARGV, 3 do
  local weight, id = ARGV[i], ARGV[i + 2]
  local status, wait, slot = 1, 0, recorded and recorded[id]
  if slot then
    slot = tonumber(slot)
    wait = math.max(0, slot - now)
  else
    if not count and (heavy or weight ~= '1') then
      count, instants, befores = redis.call('ZCARD', key), {}, {}
      gone = count - redis.call('ZCOUNT', key, '(' .. string.format('%.0f', at - window), '+inf')
      for j = 0, n - 1 do instants[count + j], befores[count + j] = added[2 * j + 1], 0 end
      if heavy then
        local before, own = struct.unpack('>I7I7', last[1], 2)
        excess = before + own - 1
      end
    end

    local from -- the last hit that must have left
    if count then
      local room, total = limit - weight, count + n -- what the others may weigh, and how many they are
      -- From low on they weigh too much, or have left; from high on they do not. First comes
      -- what is in the window, since there may be room beside all of it. The bounds are the
      -- same for all that are asked for, and so are most of the hits that are looked at.
      local low, high, k = gone - 1, count + asked, gone
      while high - low > 1 do
        if k < total and not instants[k] then
          local hit = redis.call('ZRANGE', key, k, k, 'WITHSCORES')
          instants[k], befores[k] = hit[2], #hit[1] == 26 and struct.unpack('>I7', hit[1], 2) or 0
        end
        if k < total and total - k + (excess or 0) - befores[k] > room then low = k else high = k end
        k = math.floor((low + high) / 2)
      end
      from = instants[low]
    elseif n >= limit then
      from = added[2 * (n - limit) + 1]
    elseif previous then
      if not leaving then
        local more = math.min(asked, limit) - 1
        local rank = string.format('%d', -limit)
        leaving = redis.call('ZRANGE', key, rank, more > 0 and string.format('%d', more - limit) or rank, 'WITHSCORES')
        farthest = #leaving - 2 * more
      end
      from = leaving[farthest + 2 * n]
    end

    slot = at
    if from and from + window > slot then slot = from + window end
    wait = slot - now
    -- What is not below 2^53, in the year 2255, is too far for any wait.
    if wait > 0 and wait > tonumber(ARGV[i + 1]) or slot >= 2 ^ 53 then
      status, slot = 0, 0
    else
      if count then
        instants[count + n], befores[count + n] = slot, excess or 0
        if excess or weight ~= '1' then
          id = '~' .. struct.pack('>I7I7', excess or 0, weight) .. id
          excess = (excess or 0) + weight - 1
        end
      end
      if n == 0 then
        added = { slot, id }
      else
        added[2 * n + 1], added[2 * n + 2] = slot, id
      end
      at, n = slot, n + 1
    end
  end
  answers[i - 3], answers[i - 2], answers[i - 1] = status, wait, slot
end
if n == 0 then return answers end

-- First, since a server without memory refuses it only before anything was written.
redis.call('ZADD', key, unpack(added))
local step = math.max(1, math.floor(window / 8))
local begin = at - at % step
local first = not previous or previous < begin
if first then
  -- To the millisecond after which no hit of this step counts: by the server's clock, like all.
  redis.call('PEXPIREAT', key, math.ceil((begin + step + window) / 1000))
end
if first or now % 16 == 0 then
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
end
return answers
