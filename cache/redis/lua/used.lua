-- Answers the weight of the hits that are less than one window old, those ahead
-- included, or -1 for a series with what is no hit in it.
--
-- KEYS[1]  the series, as in acquire.lua
-- ARGV     window (us)

local key = KEYS[1]
local time = redis.call('TIME')
local since = '(' .. string.format('%.0f', time[1] * 1000000 + time[2] - ARGV[1])

local used = redis.call('ZCOUNT', key, since, '+inf')
if used == 0 then return 0 end
local last = redis.call('ZRANGE', key, -1, -1)[1]
if #last == 11 then return used end
if #last ~= 26 then return -1 end

local before, own = struct.unpack('>I7I7', last, 2)
used = before + own - 1 + used
local first = redis.call('ZRANGEBYSCORE', key, since, '+inf', 'LIMIT', 0, 1)[1]
if #first == 26 then used = used - struct.unpack('>I7', first, 2) end
return used
