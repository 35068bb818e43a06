import { type Clock, fixedWindowScript } from "./fixed-window-script.ts";

/**
 * Adds costs without asking for room, or takes negative ones off. ARGV: the counters.
 * Reply: for each counter the count, the ms until its window ends, and the ms that its ban lasts.
 */
export function adjustScript(clock: Clock): string {
  return fixedWindowScript(
    clock,
    `local reply = {}
while nextKey <= #KEYS do
  local asked = readCounter()
  local c, shift = roomier(asked)
  local count
  if c.rolls then
    local before, window = used(c)
    count = math.min(MAX, math.max(0, before + c.cost))
    if count ~= before then
      keepRolling(c, count, window)
    end
  else
    -- At 0 and at 2^53 - 1 a count stands still.
    count = redis.call('BITFIELD', c.key, 'OVERFLOW', 'SAT', 'INCRBY', 'u63', 0, int(c.cost))[1]
    if count > MAX then
      count = MAX
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, int(MAX))
    end
    if count == 0 then
      redis.call('DEL', c.key)
    elseif count == c.cost then
      redis.call('PEXPIRE', c.key, int(c.left + GRACE))
    end
  end
  reply[#reply + 1] = math.min(MAX, count + shift)
  reply[#reply + 1] = c.left
  reply[#reply + 1] = banLeft(asked)
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
