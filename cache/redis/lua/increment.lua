-- Adds one to a counter and answers the sum, in text: not every whole number of 64 bits
-- is a double.
--
-- KEYS[1]  the counter
-- KEYS[2]  this very operation, and what it answered, should the driver send it again
-- ARGV     TTL of a counter that is made here (ms, 0 for none), TTL of the operation (ms),
--          whether the driver may have sent this before ('0' for no)

local done = ARGV[3] ~= '0' and redis.call('GET', KEYS[2])
if done then return done end

local made = redis.call('EXISTS', KEYS[1]) == 0
redis.call('INCR', KEYS[1])
if made and ARGV[1] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
local sum = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[2], sum, 'PX', ARGV[2])
return sum
