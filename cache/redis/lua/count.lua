-- Discards the hits before an instant and answers how many are left.
--
-- KEYS[1]  the series, as in record.lua
-- ARGV     instant (us)

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])
return redis.call('ZCARD', KEYS[1])
