-- Puts one value in the place of another if that is the one that is there, and answers
-- 1 if so, 0 if not.
--
-- KEYS[1]  the value
-- KEYS[2]  this very operation, should the driver send it again after it swapped
-- ARGV     old: whether present (1 or 0), value; new: whether present, value;
--          TTL of the new value (ms, 0 for none), TTL of the operation (ms), whether the
--          driver may have sent this before ('0' for no)

if ARGV[7] ~= '0' and redis.call('EXISTS', KEYS[2]) == 1 then return 1 end

local there = redis.call('GET', KEYS[1])
local old = ARGV[1] == '1' and ARGV[2]
if there ~= old then return 0 end

if ARGV[3] == '1' then
  if ARGV[5] == '0' then
    redis.call('SET', KEYS[1], ARGV[4])
  else
    redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
  end
elseif there then
  redis.call('DEL', KEYS[1])
end
redis.call('SET', KEYS[2], 1, 'PX', ARGV[6])
return 1
