-- Removes one hit of a series, and moves no other.
--
-- KEYS[1]  the series, as in acquire.lua
-- ARGV     identifier, instant (us)

local key, id, at = KEYS[1], ARGV[1], ARGV[2]

local score = redis.call('ZSCORE', key, id)
if score then return tonumber(score) == tonumber(at) and redis.call('ZREM', key, id) or 0 end
for _, hit in ipairs(redis.call('ZRANGEBYSCORE', key, at, at)) do
  if string.sub(hit, 1, 12) == id .. ':' then return redis.call('ZREM', key, hit) end
end
return 0
