-- Adds a hit to a series, which lives for at least the TTL from now.
--
-- KEYS[1]  the series: a sorted set with a member per hit, whose score is the hit's
--          instant in microseconds
-- ARGV     instant (us), identifier, TTL (ms)

redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
