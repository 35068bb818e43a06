import { type Clock, fixedWindowScript } from "./fixed-window-script.ts";

/**
 * Decides. ARGV: for each group the number of its counters, and these.
 * Reply: the time in ms; then for each group 1 (admitted) or 0, and for each of its counters the
 * count, the ms until its window ends, and the ms that its ban lasts.
 */
export function decideScript(clock: Clock): string {
  return fixedWindowScript(
    clock,
    `-- 2^63 - 1 less a number, in digits: Lua's own numbers are exact to 2^53 only.
local function roomAbove(number)
  local high, low = 9223372036 - math.floor(number / 1e9), 854775807 - number % 1e9
  if low < 0 then
    high, low = high - 1, low + 1e9
  end
  return string.format('%.0f%09.0f', high, low)
end

local function take(c)
  if c.checkOnly or c.cost == 0 or c.cost > c.ceiling then
    -- Nothing to charge: BITFIELD would create the key all the same.
    local count = used(c)
    return count + c.cost <= c.ceiling, count
  end
  if c.rolls then
    local count, window = used(c)
    if count + c.cost > c.ceiling then
      return false, count
    end
    return true, count + c.cost, function() keepRolling(c, count + c.cost, window) end
  end
  local steps = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, roomAbove(c.ceiling - c.cost), 'INCRBY', 'u63', 0, '-' .. roomAbove(c.ceiling),
    'GET', 'u63', 0)
  local count = steps[3]
  if not steps[1] then
    return false, count
  end
  if count == c.cost then
    redis.call('PEXPIRE', c.key, int(c.left + GRACE))
  end
  return true, count, nil, function()
    if count == c.cost then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'INCRBY', 'u63', 0, int(-c.cost))
    end
  end
end

local reply = { now }
while nextKey <= #KEYS do
  local verdict = #reply + 1
  reply[verdict] = 1
  local keeps, returns, bans = {}, {}, {}
  for _ = 1, arg() do
    local c = readCounter()
    local ban, count, shift = banLeft(c), 0, 0
    local at = #reply + 1
    if ban > 0 then
      reply[verdict] = 0
      count = used(c)
    else
      local admitted, keep, giveBack, chosen
      chosen, shift = roomier(c)
      admitted, count, keep, giveBack = take(chosen)
      if not admitted then
        reply[verdict] = 0
        if c.ban > 0 and not c.neverBans then
          ban = c.ban
          bans[#bans + 1] = c
        end
      elseif keep then
        keeps[#keeps + 1] = keep
        returns[#returns + 1] = function() reply[at] = reply[at] - c.cost end
      elseif giveBack then
        returns[#returns + 1] = function()
          giveBack()
          reply[at] = reply[at] - c.cost
        end
      end
    end
    reply[at], reply[at + 1], reply[at + 2] = count + shift, c.left, ban
  end
  for _, finish in ipairs(reply[verdict] == 1 and keeps or returns) do
    finish()
  end
  for _, c in ipairs(bans) do
    redis.call('SET', c.banKey, 1, 'PX', int(c.ban))
  end
end
`,
  );
}
