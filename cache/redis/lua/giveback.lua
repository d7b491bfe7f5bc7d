-- Removes one hit of a series, and moves no other.
--
-- KEYS[1]  the series, as in acquire.lua
-- ARGV     identifier, instant (us)

local key, id, at = KEYS[1], ARGV[1], ARGV[2]

local score = redis.call('ZSCORE', key, id)
if score then return tonumber(score) == tonumber(at) and redis.call('ZREM', key, id) or 0 end

for _, hit in ipairs(redis.call('ZRANGEBYSCORE', key, at, at)) do
  if #hit == 26 and string.sub(hit, -11) == id then
    local _, weight = struct.unpack('>I7I7', hit, 2)
    local rank = redis.call('ZRANK', key, hit)
    redis.call('ZREM', key, hit)
    if weight > 1 then
      -- Those behind it have it in their sums.
      local behind = redis.call('ZRANGE', key, rank, -1, 'WITHSCORES')
      for i = 1, #behind, 2 do
        local before, own = struct.unpack('>I7I7', behind[i], 2)
        -- Added before it is removed: a series that is empty for a moment loses its TTL.
        redis.call('ZADD', key, behind[i + 1],
          '~' .. struct.pack('>I7I7', before - weight + 1, own) .. string.sub(behind[i], -11))
        redis.call('ZREM', key, behind[i])
      end
    end
    return 1
  end
end
return 0
