-- Takes the next slot of a sliding window, or says how far away it is.
--
-- KEYS[1]  the series: a sorted set with a member per hit, whose score is the hit's
--          instant in microseconds
-- ARGV     limit, window (us), weight, longest wait (us), identifier, how long ago (us)
--          the driver may have sent this before ('0' if it has not)
--
-- Answers { 1, wait, instant } for a slot taken, { 0, wait, 0 } for one that is too
-- far away, and { -1, 0, 0 } for a series with what is no hit in it.
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
-- expiry, to one that does for all that are to come in the step, and discards what has left
-- the window; a hit that finds its step begun by the one before it leaves both alone. (One
-- series serves one width of window, or the steps would not be the same for all.) What has
-- left and is still there is in nobody's way: it is too old to be waited for.
--
-- Numbers are whole and below 2^53 (one that is not, is no hit), so neither a double
-- nor the 17 digits in which they are handed on lose anything, and none has an exponent.

local key, id = KEYS[1], ARGV[5]
local window, weight = tonumber(ARGV[2]), tonumber(ARGV[3])
local room = tonumber(ARGV[1]) - weight -- what the others may weigh

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local last = redis.call('ZRANGE', key, '-1', '-1', 'WITHSCORES')
local at = now -- the slot
local extra    -- what all hits weigh beyond 1 each, if any does
local previous -- the instant of the last hit, if there is one

if last[1] then
  local from -- the last hit that must have left
  if #last[1] == 11 then
    local rank = string.format('%d', -room - 1)
    from = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2]
  elseif #last[1] == 26 then
    local before, own = struct.unpack('>I7I7', last[1], 2)
    extra = before + own - 1
    local count = redis.call('ZCARD', key)
    -- From low on they weigh too much, from high on they do not.
    local low, high = math.max(-1, count - room - 2), count
    while high - low > 1 do
      local i = math.floor((low + high) / 2)
      local hit = redis.call('ZRANGE', key, i, i, 'WITHSCORES')
      before = 0
      if #hit[1] == 26 then before = struct.unpack('>I7', hit[1], 2) end
      if count - i + extra - before > room then
        low, from = i, hit[2]
      else
        high = i
      end
    end
  else
    return { -1, 0, 0 }
  end
  previous = tonumber(last[2])
  if previous % 1 ~= 0 or previous >= 2 ^ 53 then return { -1, 0, 0 } end
  if previous > at then at = previous end
  if from and from + window > at then at = from + window end

  if ARGV[6] ~= '0' then
    local done = redis.call('ZSCORE', key, id)
    local rank = redis.call('ZCARD', key)
    while extra and not done and rank > 0 do
      rank = rank - 1
      local hit = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
      if string.sub(hit[1], -11) == id then
        done = hit[2]
      elseif hit[2] + ARGV[6] < now then
        break -- asked for before this was first sent, as all before it
      end
    end
    if done then return { 1, math.max(0, done - now), tonumber(done) } end
  end
end

-- What is not below 2^53, in the year 2255, is too far for any wait.
if at - now > tonumber(ARGV[4]) or at >= 2 ^ 53 then return { 0, at - now, 0 } end

if extra or weight > 1 then id = '~' .. struct.pack('>I7I7', extra or 0, weight) .. id end
-- First, since a server without memory refuses it only before anything was written.
redis.call('ZADD', key, string.format('%d', at), id)
local step = math.max(1, math.floor(window / 8))
if not previous or math.floor(previous / step) ~= math.floor(at / step) then
  -- To the millisecond after which no hit of this step counts: by the server's clock, like all.
  redis.call('PEXPIREAT', key, math.ceil((at - at % step + step + window) / 1000))
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
end
return { 1, at - now, at }
