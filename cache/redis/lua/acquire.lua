-- Takes the next slot of a sliding window, or says how far away it is.
--
-- KEYS[1]  the series: a sorted set with a member per hit, whose score is the hit's
--          instant in microseconds. A member is the hit's identifier, of 11 bytes,
--          followed by a colon and the weight if that is not 1. The member 'w' is
--          there, at the instant of the last such hit, while there may be one.
-- ARGV     limit, window (us), weight, longest wait (us), identifier
--
-- Answers { 1, wait, instant } for a slot taken, { 0, wait, 0 } for one that is too
-- far away, and { -1, 0, 0 } for a series with what is no hit in it.

local key, id = KEYS[1], ARGV[5]
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local weight, longest = tonumber(ARGV[3]), tonumber(ARGV[4])
local room = limit - weight -- what the others may weigh

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function int(n) return string.format('%.0f', n) end
local function instant(score)
  local n = tonumber(score)
  return n and n % 1 == 0 and n > -2^53 and n < 2^53 and n
end
local corrupt = { -1, 0, 0 }

local member = id
if weight > 1 then member = id .. ':' .. int(weight) end

-- The driver may be sending again what has been done, but not answered.
local known = redis.call('ZMSCORE', key, member, 'w')
if known[1] then
  local at = tonumber(known[1])
  return { 1, math.max(0, at - now), at }
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', int(now - window))

local at = now -- the slot: not before now, nor before the last hit ...
local leaving -- ... nor before this one, the last that must have left by then
if known[2] then
  local sum, rest = 0, redis.call('ZCARD', key)
  local last
  while rest > 0 and not leaving do
    local from = math.max(0, rest - 100)
    local hits = redis.call('ZRANGE', key, from, rest - 1, 'WITHSCORES')
    rest = from
    for i = #hits - 1, 1, -2 do
      local hit = hits[i]
      if hit ~= 'w' then
        local score = instant(hits[i + 1])
        local w = #hit == 11 and 1 or tonumber(string.match(hit, '^...........:(%d+)$'))
        if not (score and w) then return corrupt end
        last = last or score
        sum = sum + w
        if sum > room then
          leaving = score
          break
        end
      end
    end
  end
  if last and last > at then at = last end
else
  local count = redis.call('ZCARD', key)
  if count > 0 then
    local last = instant(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
    if not last then return corrupt end
    if last > at then at = last end
    if count > room then
      local i = count - room - 1
      leaving = instant(redis.call('ZRANGE', key, i, i, 'WITHSCORES')[2])
      if not leaving then return corrupt end
    end
  end
end
if leaving and leaving + window > at then at = leaving + window end

if at - now > longest then
  -- A series that somebody else has put here may have no TTL.
  if redis.call('PTTL', key) == -1 then
    redis.call('PEXPIREAT', key, int(math.ceil((at + window) / 1000)))
  end
  return { 0, at - now, 0 }
end

redis.call('ZADD', key, int(at), member)
if weight > 1 then redis.call('ZADD', key, int(at), 'w') end
-- To the millisecond after which nothing in it counts: by the server's clock, like all.
redis.call('PEXPIREAT', key, int(math.ceil((at + window) / 1000)))
return { 1, at - now, at }
