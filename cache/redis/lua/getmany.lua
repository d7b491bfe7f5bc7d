-- Answers the values of all keys at one instant: a string, nil, or the error of reading
-- it. MGET would take what is no string for nothing.

local values = {}
for i, key in ipairs(KEYS) do values[i] = redis.pcall('GET', key) end
return values
