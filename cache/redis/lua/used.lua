-- Answers the weight of the hits that are less than one window old, those ahead
-- included, or -1 for a series with what is no hit in it.
--
-- KEYS[1]  the series, as in acquire.lua
-- ARGV     window (us)

local key, window = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local since = string.format('(%.0f', time[1] * 1000000 + time[2] - window)

if not redis.call('ZSCORE', key, 'w') then return redis.call('ZCOUNT', key, since, '+inf') end
local sum = 0
for _, hit in ipairs(redis.call('ZRANGEBYSCORE', key, since, '+inf')) do
  if hit ~= 'w' then
    local w = #hit == 11 and 1 or tonumber(string.match(hit, '^...........:(%d+)$'))
    if not w then return -1 end
    sum = sum + w
  end
end
return sum
