import { type Clock, fixedWindowScript } from "./script.ts";

/**
 * Gives back what will not be used, then decides. ARGV: the numbers of groups and of counters to
 * give back to; each of the latter with the quota and its window's number; then for each group the
 * number of its counters, and these. The number is negative for a shadow group: it may fail without
 * the others. KEYS are in the same order.
 * Reply: the time in ms; then for each group 1 (admitted) or 0, and for each of its counters the
 * count, the ms until its window ends, the ms that its ban lasts, and what was charged. Of a shadow
 * group that failed it is 2, and nothing else.
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

-- Charges an amount unless the count would then exceed \`top\`; and the count after it.
local function charge(c, amount, top)
  local steps = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, roomAbove(top - amount), 'INCRBY', 'u63', 0, '-' .. roomAbove(top),
    'GET', 'u63', 0)
  return steps[1] and true or false, steps[3]
end

local function shareOf(room)
  return math.floor(room / SHARE)
end

-- Whether there was room; the count after it; what was charged; how to charge, where that is later.
local function take(c)
  if c.checkOnly or c.cost == 0 or c.cost > c.ceiling then
    -- Nothing to charge: BITFIELD would create the key all the same.
    local count = used(c)
    return count + c.cost <= c.ceiling, count, 0
  end
  if c.rolls then
    local count, window = used(c)
    if count + c.cost > c.ceiling then
      return false, count, 0
    end
    local amount = math.max(c.cost, math.min(c.block, shareOf(c.ceiling - count)))
    return true, count + amount, amount, function() keepRolling(c, count + amount, window) end
  end
  -- No more than an unused counter would give: then one that is asked for more has been created.
  local amount = math.max(c.cost, math.min(c.block, shareOf(c.ceiling)))
  local top = c.ceiling
  if amount > c.cost then
    top = top - (SHARE - 1) * amount
  end
  local admitted, count = charge(c, amount, top)
  if not admitted and amount > c.cost and count + c.cost <= c.ceiling then
    amount = math.max(c.cost, shareOf(c.ceiling - count))
    admitted, count = charge(c, amount, c.ceiling)
  end
  if not admitted then
    return false, count, 0
  end
  undos[#undos + 1] = function()
    if count == amount then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'INCRBY', 'u63', 0, int(-amount))
    end
  end
  if count == amount then
    redis.call('PEXPIRE', c.key, int(c.left + GRACE))
  end
  return true, count, amount
end

-- Takes off what will not be used, if there is as much. Of 0, -quota would be written as -0.
local function giveBack(c, quota)
  local steps = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, int(0 - quota), 'GET', 'u63', 0)
  if steps[2] == 0 then
    redis.call('DEL', c.key)
  end
end

local groups = arg()
for _ = 1, arg() do
  local c = readCounter()
  local quota, window = arg(), arg()
  if window == c.window then
    -- What is not given back stays charged, which no decision is to fail for.
    pcall(giveBack, c, quota)
  end
end

local reply = { now }

local function decideGroup(counters)
  local verdict, mark = #reply + 1, #undos
  reply[verdict] = 1
  local keeps, charges, bans = {}, {}, {}
  for _, c in ipairs(counters) do
    local ban, count, shift, charged = banLeft(c), 0, 0, 0
    local at = #reply + 1
    if ban > 0 then
      reply[verdict] = 0
      count = used(c)
    else
      local admitted, keep, chosen
      chosen, shift = roomier(c)
      admitted, count, charged, keep = take(chosen)
      if not admitted then
        reply[verdict] = 0
        if c.ban > 0 and not c.neverBans then
          ban = c.ban
          bans[#bans + 1] = c
        end
      elseif charged > 0 then
        keeps[#keeps + 1] = keep
        charges[#charges + 1] = { at = at, charged = charged }
      end
    end
    reply[at], reply[at + 1], reply[at + 2], reply[at + 3] =
      math.min(MAX, count + shift), c.left, ban, charged
  end
  if reply[verdict] == 1 then
    for _, keep in ipairs(keeps) do
      finishes[#finishes + 1] = keep
    end
  else
    undoTo(mark)
    for _, each in ipairs(charges) do
      reply[each.at], reply[each.at + 3] = reply[each.at] - each.charged, 0
    end
  end
  for _, c in ipairs(bans) do
    finishes[#finishes + 1] = function()
      redis.call('SET', c.banKey, 1, 'PX', int(c.ban))
    end
  end
end

local failure = attempt(function()
  for _ = 1, groups do
    local size, counters = arg(), {}
    for at = 1, math.abs(size) do
      counters[at] = readCounter()
    end
    if size >= 0 then
      decideGroup(counters)
    else
      local verdict, mark = #reply + 1, #undos
      if not pcall(decideGroup, counters) then
        undoTo(mark)
        for at = #reply, verdict, -1 do
          reply[at] = nil
        end
        reply[verdict] = 2
      end
    end
  end
end)
if failure then
  return failure
end
`,
  );
}
