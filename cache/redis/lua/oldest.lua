-- Answers the instant of the first hit at or after one, or nil.
--
-- KEYS[1]  the series, as in record.lua
-- ARGV     instant (us)

return redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
