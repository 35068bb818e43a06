import { type Clock, fixedWindowScript } from "./script.ts";

/**
 * Adds costs without asking for room, or takes negative ones off. ARGV: the counters.
 * Reply: for each counter the count, the ms until its window ends, and the ms that its ban lasts.
 */
export function adjustScript(clock: Clock): string {
  return fixedWindowScript(
    clock,
    `local reply = {}

local function adjust()
  local asked = readCounter()
  local c, shift = roomier(asked)
  local count
  if c.rolls then
    local before, window = used(c)
    count = math.min(MAX, math.max(0, before + c.cost))
    if count ~= before then
      finishes[#finishes + 1] = function() keepRolling(c, count, window) end
    end
  else
    -- At 0 and at 2^53 - 1 a count stands still.
    local steps = redis.call('BITFIELD', c.key, 'GET', 'u63', 0, 'OVERFLOW', 'SAT',
      'INCRBY', 'u63', 0, int(c.cost))
    local before = steps[1]
    count = math.min(MAX, steps[2])
    undos[#undos + 1] = function()
      if before == 0 then
        redis.call('DEL', c.key)
      else
        redis.call('BITFIELD', c.key, 'SET', 'u63', 0, int(before))
      end
    end
    finishes[#finishes + 1] = function()
      if steps[2] > MAX then
        redis.call('BITFIELD', c.key, 'SET', 'u63', 0, int(MAX))
      end
      if count == 0 then
        redis.call('DEL', c.key)
      elseif before == 0 then
        redis.call('PEXPIRE', c.key, int(c.left + GRACE))
      end
    end
  end
  reply[#reply + 1] = math.min(MAX, count + shift)
  reply[#reply + 1] = c.left
  reply[#reply + 1] = banLeft(asked)
end

local failure = attempt(function()
  while nextKey <= #KEYS do
    adjust()
  end
end)
if failure then
  return failure
end
`,
  );
}

/** Removes counters and their bans. ARGV: the counters. Reply: how many keys there were. */
export function resetScript(clock: Clock): string {
  return fixedWindowScript(
    clock,
    `local reply = { 0 }
while nextKey <= #KEYS do
  local c = readCounter()
  reply[1] = reply[1] + redis.call('DEL', c.key)
  if c.banKey then
    reply[1] = reply[1] + redis.call('DEL', c.banKey)
  end
end
`,
  );
}
