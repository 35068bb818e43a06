-- Counts in fixed windows, with the algorithm of engine/fixed-window.ts. `npm run assets` puts this file without its
-- comments into script.generated.ts. upstash-store.ts adds a first line with the constants USES_REDIS_TIME,
-- MAX_COUNT, EXPIRY_GRACE_MS, BLOCK_SHARE and SLOT_RETRY_MS. wire.ts writes the arguments and reads the reply.
--
-- KEYS   For each counter, in the order of ARGV: its key, the key of its ban if it has one, and the key of its
--        strikes if its bans become longer. With the clock `edge`, these are the keys as stored, so that every
--        key that the script uses is declared. With the clock `redis`, the script adds the window's number.
-- ARGV   The Worker's time in ms with the clock `edge`, otherwise 0; the number of entries; and for each entry:
--        - with the clock `edge`, the entry's time in ms
--        - the counters to return quota to, each followed by the quota and the window in which it was charged
--        - the counters to adjust, each followed by 0; by 1 and the number of the window to which the cost belongs;
--          or by 2, this number, and the highest count: see `Adjustment` in counter.ts
--        - the counters to remove, each followed by 1 if its count is kept
--        - the number of equal requests, and the group
--        A list begins with its length. A counter is ten integers: limit, window in ms, offset in ms, cost,
--        ceiling, 1 if it rolls over, 2 if it counts slots or 3 if it rolls over and the request waits, 1 if it is
--        only checked; its block, the id of its slot, or its capacity; ban in ms, 1 if it never bans. If bans
--        become longer, the negative number of their lengths replaces the ban in ms. The ten integers are then
--        followed by the lengths, and by the time after which strikes are forgotten, all in ms. A calendar
--        counter has the window 0, the longest length of its windows as the offset, and five more integers:
--        see `readCalendar`.
-- Reply  Integers only, except the messages of errors. The time in ms; and for each entry:
--        - the reply of `adjust` if the entry adjusts counters, and of `remove` if it removes counters
--        - if it has a group, the parts of the answer. A part is the number of requests that were admitted together, and
--          for each counter the count, the ms until its window ends, the ms until its ban ends, and the quota charged.
--          The last part is a denial, with the number 0, or the message of an error, unless all are admitted
--
-- A counter is stored as an unsigned 63-bit field. One BITFIELD command can check and charge such a field (see
-- `chargeField`), and Upstash bills each command.
--
-- A counter that rolls over is stored as a string, `W:count:limit`. `W` is the number of the window in which the
-- counter was last written, `count` is its count at that time, and `limit` is the limit that determined the expiry of
-- its key. When the script reads the counter, it subtracts the quota granted since then.
--
-- A counter of slots is stored as a hash: the id of each slot, and the time in ms when it expires. So a return only
-- removes a field, which Redis allows even if it is full.

local now = tonumber(ARGV[1])
if USES_REDIS_TIME then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local argAt, keyAt = 1, 0

-- Writes an integer so that Redis can read it. Lua itself would write 10^15 as 1e+15.
local function digits(number)
  return string.format('%.0f', number)
end

local function nextArg()
  argAt = argAt + 1
  return tonumber(ARGV[argAt])
end

local function nextKey(suffix)
  keyAt = keyAt + 1
  return USES_REDIS_TIME and KEYS[keyAt] .. suffix or KEYS[keyAt]
end

-- Sets the current window of a calendar counter. Lua knows no time zones, so the arguments contain the number of a
-- window and four starts. This is the window before the Worker's current window. The starts are those of this window
-- and of the next three windows. `ends` has the ends of the first three windows, up to the window `lastEnd`.
--
-- If the current time is in none of the three windows, a clock is wrong by a whole window, and the counter gets a
-- `fault`. No command may use such a counter, but the script must go on reading arguments.
local function readCalendar(c)
  local window, start = nextArg(), nextArg()
  c.windowMs, c.ends, c.lastEnd = c.offsetMs, {}, window + 2
  for at = window, window + 2 do
    local nextStart = nextArg()
    c.ends[at] = nextStart
    if start <= now and now < nextStart then
      c.window, c.resetMs = at, nextStart - now
    end
    start = nextStart
  end
  if not c.window then
    c.window, c.fault = 0, 'the clocks of Redis and the Worker differ by a whole window'
  end
end

-- Returns the next counter from KEYS and ARGV. Its fields have the names of `Counter` in TypeScript. `window` and
-- `resetMs` are those of its current window.
local function readCounter()
  local c = { limit = nextArg(), windowMs = nextArg(), offsetMs = nextArg(), cost = nextArg(),
    ceiling = nextArg() }
  local kind = nextArg()
  c.rollsOver, c.checkOnly, c.block = kind == 1 or kind == 3, nextArg() == 1, nextArg()
  if kind == 3 then
    c.capacity, c.block = c.block, 0
  end
  if kind == 2 then
    c.slot, c.block = digits(c.block), 0
  end
  c.banMs, c.neverBans = nextArg(), nextArg() == 1
  if c.banMs < 0 then
    c.lengthsMs = {}
    for at = 1, -c.banMs do
      c.lengthsMs[at] = nextArg()
    end
    c.banMs, c.forgetAfterMs = c.lengthsMs[1], nextArg()
  end
  if c.slot then
    c.window, c.resetMs = 0, SLOT_RETRY_MS
  elseif c.windowMs == 0 then
    readCalendar(c)
  else
    c.window = math.floor((now - c.offsetMs) / c.windowMs)
    c.resetMs = (c.window + 1) * c.windowMs + c.offsetMs - now
  end
  local suffix = (c.rollsOver or c.slot) and '' or ':' .. digits(c.window)
  c.key = nextKey(suffix)
  if c.banMs > 0 then
    c.banKey = nextKey('')
  end
  if c.lengthsMs then
    c.strikesKey = nextKey('')
  end
  return c
end

local function refuseFault(c)
  if c.fault then
    error(c.fault, 0)
  end
  return c
end

-- Sets `window` and `resetMs` for a window after the window that the clock shows. If the script does not know the end
-- of a calendar window, `resetMs` is too long, so that no client retries too early.
local function enterWindow(c, window)
  local known = c.window
  if c.ends then
    known = math.min(window, c.lastEnd)
    c.resetMs = c.ends[known] - now
  end
  c.resetMs = math.min(MAX_COUNT, c.resetMs + (window - known) * c.windowMs)
  c.window = window
end

-- Returns the counter's count, and the number of the window of this count. The last charge may be in a later window
-- than the clock shows, because a clock has stepped back or the start of the windows was changed. That window then
-- becomes the counter's current window.
--
-- `debt` is the unpaid rest of a stored count, with the limit that determined the expiry of its key. Values of
-- earlier versions have no limit.
--
-- The count of a counter of slots is the number of its open slots. Because a call can take and return many slots of one
-- client, the script reads and counts these slots only once. `ends` maps the ids of stored slots to the times of their
-- ends. `returned` has the ids of slots to remove.
local slotsByKey = {}

local function slotsAt(key)
  slotsByKey[key] = slotsByKey[key] or { returned = {} }
  return slotsByKey[key]
end

local function readSlots(key)
  local slots = slotsAt(key)
  if not slots.ends then
    local stored, ends = redis.call('HGETALL', key), {}
    for at = 1, #stored, 2 do
      if not slots.returned[stored[at]] then
        ends[stored[at]] = tonumber(stored[at + 1])
      end
    end
    slots.ends = ends
  end
  if slots.countedAt ~= now then
    slots.count, slots.countedAt = 0, now
    for _, ends in pairs(slots.ends) do
      if ends > now then
        slots.count = slots.count + 1
      end
    end
  end
  return slots
end

local function readCount(c)
  if c.slot then
    c.slots = readSlots(c.key)
    return c.slots.count, c.window
  end
  if not c.rollsOver then
    return redis.call('BITFIELD_RO', c.key, 'GET', 'u63', 0)[1], c.window
  end
  local stored = redis.call('GET', c.key)
  if not stored then
    return 0, c.window
  end
  local writtenIn, count, limit = string.match(stored, '^(-?%d+):(%d+):?(%d*)$')
  writtenIn, count = tonumber(writtenIn), tonumber(count)
  if writtenIn > c.window then
    enterWindow(c, writtenIn)
  end
  local left = math.max(0, count - (c.window - writtenIn) * c.limit)
  c.debt = { left = left, writtenIn = writtenIn, count = count, limit = tonumber(limit) or MAX_COUNT }
  return left, c.window
end

-- Stores a count of a window. The key expires when the grants of later windows have repaid the rest of the count. The
-- value includes the limit. A later call with a lower limit then knows that the key must live longer.
local function storeRolling(c, left, window, count)
  local windows = 1
  if c.limit > 0 then
    windows = math.max(1, math.ceil(left / c.limit))
  end
  local ttlMs = c.resetMs + (windows - 1) * c.windowMs + EXPIRY_GRACE_MS
  redis.call('SET', c.key, digits(window) .. ':' .. digits(count) .. ':' .. digits(c.limit),
    'PX', digits(math.min(ttlMs, MAX_COUNT)))
end

local function writeRolling(c, count)
  storeRolling(c, count, c.window, count)
end

local function isOpen(c)
  return (c.slots.ends[c.slot] or 0) > now
end

-- Takes or renews the counter's slot.
local function takeSlot(c)
  local slots, ends = c.slots, now + c.windowMs
  redis.call('HSET', c.key, c.slot, digits(ends))
  slots.count = slots.count + (isOpen(c) and 0 or 1)
  slots.ends[c.slot], slots.returned[c.slot] = ends, nil
  slots.isTaken = true
end

local function returnSlot(c)
  local slots = slotsAt(c.key)
  slots.returned[c.slot] = true
  if not slots.ends then
    return
  end
  if slots.countedAt == now and (slots.ends[c.slot] or 0) > now then
    slots.count = slots.count - 1
  else
    slots.countedAt = nil
  end
  slots.ends[c.slot] = nil
end

-- Removes returned slots. If slots of a key were taken, also removes expired ones, and the key then expires with its
-- last slot. None of these commands needs memory.
local function finishSlots(key, slots)
  if slots.isTaken then
    local last = now + 1
    for id, ends in pairs(slots.ends) do
      last = math.max(last, ends)
      slots.returned[id] = slots.returned[id] or ends <= now or nil
    end
    redis.call('PEXPIRE', key, digits(last - now))
  end
  local ids = {}
  for id in pairs(slots.returned) do
    ids[#ids + 1] = id
  end
  if #ids > 0 then
    redis.call('HDEL', key, unpack(ids))
  end
end

-- Returns the milliseconds until the client's ban ends; 0 if there is no ban.
--
-- The key of a ban expires when the ban ends, so with both clocks Redis ends the ban. If bans become longer, one
-- command reads the ban and the strikes. The value of such a ban is the time of its end, which saves the command
-- PTTL. A ban that began while the rule had a single length has the value 1, so the script reads its remaining time
-- with PTTL.
local function readBanMs(c)
  if c.banMs == 0 then
    return 0
  end
  if c.lengthsMs then
    local stored = redis.call('MGET', c.banKey, c.strikesKey)
    c.strikes = tonumber(stored[2]) or 0
    if not stored[1] then
      return 0
    end
    local leftMs = (tonumber(stored[1]) or 0) - now
    if leftMs > 0 then
      return leftMs
    end
  end
  return math.max(0, redis.call('PTTL', c.banKey))
end

-- Each piece of work makes all of its writes or none. A command fails if its key stores a value of the wrong type,
-- and Redis then keeps the script's earlier writes. So each charge adds a function to `undoSteps` that takes the
-- charge back. A write that cannot be taken back waits in `finalSteps` until no command of the work can fail any
-- more.
local reply, undoSteps, finalSteps = {}, {}, {}

local function undo()
  for at = #undoSteps, 1, -1 do
    undoSteps[at]()
  end
  undoSteps, finalSteps = {}, {}
end

local function commit()
  local steps = finalSteps
  undoSteps, finalSteps = {}, {}
  for _, finish in ipairs(steps) do
    finish()
  end
end

local function truncate(size)
  for at = #reply, size + 1, -1 do
    reply[at] = nil
  end
end

-- Runs a piece of work, which must end with `commit()`. If the work fails, its charges are taken back, and the
-- error's message replaces its part of the reply. An error is a table since Redis 7, and a string before.
local function try(work, ...)
  local size = #reply
  local succeeded, failure = pcall(work, ...)
  if not succeeded then
    undo()
    truncate(size)
    reply[size + 1] = type(failure) == 'table' and failure.err or tostring(failure)
  end
  return succeeded
end

-- `chargeField(c, amount, ceiling)`: charges an amount unless the count would then exceed the ceiling. Returns
-- whether the amount was charged, and the count.
--
-- A single BITFIELD command checks and charges. Let `headroom` be 2^63 - 1 - ceiling. The first step adds `amount`
-- and `headroom` to the count. If and only if count + amount > ceiling, this sum overflows, and the step changes
-- nothing. The second step subtracts `headroom`. After an overflow, this step fails too: its result would be
-- negative, because no count comes near 2^63.
--
-- `fieldMaxMinus(number)`: returns 2^63 - 1 minus a number, in two halves, because Lua's numbers are exact only up to
-- 2^53.
local function fieldMaxMinus(number)
  local high, low = 9223372036 - math.floor(number / 1e9), 854775807 - number % 1e9
  if low < 0 then
    high, low = high - 1, low + 1e9
  end
  return string.format('%.0f%09.0f', high, low)
end

local function chargeField(c, amount, ceiling)
  local results = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, fieldMaxMinus(ceiling - amount),
    'INCRBY', 'u63', 0, '-' .. fieldMaxMinus(ceiling), 'GET', 'u63', 0)
  return results[1] and true or false, results[3]
end

-- `chargeFixed(c)`: charges a counter that does not roll over. Returns whether it was charged, its count, and the
-- amount charged.
--
-- The first attempt charges the block that an unused counter would grant. The ceiling of this attempt is lowered, so
-- that it succeeds only if the quota left still allows a block of this size. If this attempt fails although the cost
-- itself fits, a second command charges the smaller block that the count allows. A failed BITFIELD would create the
-- key of an unused counter, but no attempt fails on such a counter.
local function blockFor(quotaLeft)
  return math.floor(quotaLeft / BLOCK_SHARE)
end

local function chargeFixed(c)
  local amount = math.max(c.cost, math.min(c.block, blockFor(c.ceiling)))
  local ceiling = c.ceiling
  if amount > c.cost then
    ceiling = ceiling - (BLOCK_SHARE - 1) * amount
  end
  local charged, count = chargeField(c, amount, ceiling)
  if not charged and amount > c.cost and count + c.cost <= c.ceiling then
    amount = math.max(c.cost, blockFor(c.ceiling - count))
    charged, count = chargeField(c, amount, c.ceiling)
  end
  if not charged then
    return false, count, 0
  end
  undoSteps[#undoSteps + 1] = function()
    if count == amount then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'INCRBY', 'u63', 0, digits(-amount))
    end
  end
  if count == amount then
    redis.call('PEXPIRE', c.key, digits(c.resetMs + EXPIRY_GRACE_MS))
  end
  return true, count, amount
end

-- Like `chargeFixed(c)`, for a counter that rolls over. Also returns a function that stores the new count. This
-- function must run only if the whole group is admitted.
local function chargeRolling(c)
  local count = readCount(c)
  if count + c.cost > c.ceiling then
    return false, count, 0
  end
  local amount = math.max(c.cost, math.min(c.block, blockFor(c.ceiling - count)))
  return true, count + amount, amount, function() writeRolling(c, count + amount) end
end

-- Like `chargeRolling(c)`, for a counter of slots. A slot that the request has taken already does not count against it.
local function chargeSlot(c)
  local count = readCount(c)
  if isOpen(c) then
    count = count - 1
  end
  if count + 1 > c.ceiling then
    return false, count, 0
  end
  return true, count + 1, 1, function() takeSlot(c) end
end

-- Charges any counter, and returns the same values as `chargeRolling`. A cost above the ceiling is only compared with
-- the count, because BITFIELD would create the counter's key.
local function chargeCounter(c)
  if c.checkOnly or c.cost == 0 or c.cost > c.ceiling then
    local count = readCount(c)
    return count + c.cost <= c.ceiling, count, 0
  end
  if c.slot then
    return chargeSlot(c)
  end
  if c.rollsOver then
    return chargeRolling(c)
  end
  return chargeFixed(c)
end

-- Returns the length of a new ban, and a function that stores the ban. Must run after `readBanMs`, and only for a
-- counter without a ban. If bans become longer, the ban adds one strike.
local function newBan(c)
  if not c.lengthsMs then
    return c.banMs, function() redis.call('SET', c.banKey, 1, 'PX', digits(c.banMs)) end
  end
  local banMs = c.lengthsMs[math.min(c.strikes + 1, #c.lengthsMs)]
  return banMs, function()
    redis.call('SET', c.banKey, digits(now + banMs), 'PX', digits(banMs))
    redis.call('SET', c.strikesKey, digits(c.strikes + 1), 'PX', digits(banMs + c.forgetAfterMs))
  end
end

-- Returns unused quota to a counter in the window of the charge. If the count is lower than the quota, the return
-- fails without an error, and the quota stays charged. `0 - quota` is never -0, as `-quota` would be.
local function returnUnused(c, quota)
  if c.slot then
    return returnSlot(c)
  end
  local results = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, digits(0 - quota), 'GET', 'u63', 0)
  if results[2] == 0 then
    redis.call('DEL', c.key)
  end
end

-- Extends the expiry of a debt if the limit was lowered: see `keepDebt` in fixed-window.ts.
local function keepDebt(c)
  local debt = c.debt
  if debt and debt.left > 0 and c.cost ~= 0 and c.limit > 0 and c.limit < debt.limit then
    finalSteps[#finalSteps + 1] = function()
      storeRolling(c, debt.left, debt.writtenIn, debt.count)
    end
  end
end

-- Whether a request that waits for all the quota that it reserves passes in the windows of all of this quota.
local function isGrantedTogether(counters, size)
  local begins, ends = 0, math.huge
  for index, c in ipairs(counters) do
    if c.capacity then
      local delayMs, missing = 0, reply[size + 4 * index - 2] - c.capacity
      if missing > 0 then
        delayMs = c.resetMs + (math.ceil(missing / c.limit) - 1) * c.windowMs
      end
      begins = math.max(begins, delayMs)
      ends = math.min(ends, delayMs > 0 and delayMs + c.windowMs or c.resetMs)
    end
  end
  return begins < ends
end

-- Charges all counters of a group or none, and adds the verdict to `reply`. Counters that do not roll over are
-- charged at once. If any counter denies the group, these charges are taken back. Bans and counters that roll over
-- are written in the final steps: a debt first, because a charge replaces it.
local function decideGroup(counters, isTrial)
  local verdictAt = #reply + 1
  reply[verdictAt] = 1
  for _, c in ipairs(counters) do
    refuseFault(c)
  end
  local charges, bans = {}, {}
  for _, c in ipairs(counters) do
    local at, banMs, count, amount = #reply + 1, readBanMs(c), 0, 0
    if banMs > 0 then
      reply[verdictAt] = 0
      count = readCount(c)
    else
      local hasQuota, write
      hasQuota, count, amount, write = chargeCounter(c)
      if not hasQuota then
        reply[verdictAt] = 0
        if c.banMs > 0 and not c.neverBans and not isTrial then
          banMs, bans[#bans + 1] = newBan(c)
        end
      elseif amount > 0 then
        charges[#charges + 1] = { at = at, amount = amount, write = write }
      end
    end
    reply[at], reply[at + 1], reply[at + 2], reply[at + 3] =
      math.min(MAX_COUNT, count), c.resetMs, banMs, amount
  end
  if reply[verdictAt] == 1 and not isGrantedTogether(counters, verdictAt - 1) then
    reply[verdictAt] = 0
  end
  if reply[verdictAt] == 0 then
    undo()
    for _, charge in ipairs(charges) do
      reply[charge.at], reply[charge.at + 3] = reply[charge.at] - charge.amount, 0
    end
  end
  for _, c in ipairs(counters) do
    keepDebt(c)
  end
  if reply[verdictAt] == 1 then
    for _, charge in ipairs(charges) do
      finalSteps[#finalSteps + 1] = charge.write
    end
  end
  for _, writeBan in ipairs(bans) do
    finalSteps[#finalSteps + 1] = writeBan
  end
end

-- `decideTimes(counters, times)`: decides equal requests as if they came one after the other. `decidePart` first tries to charge all of them at once. If they do not all fit, the counts of
-- this trial show how many of them fit.
--
-- `takeTimes(counters, times)`: sets the cost for several requests together, and returns their number. This number is
-- at most the number that fits into an unused counter. So no cost is above 2^53 - 1, and no counter is charged that a
-- single request could not charge. A counter that is only checked keeps its cost.
local function takeTimes(counters, times)
  for _, c in ipairs(counters) do
    if c.unit > 0 and not c.checkOnly then
      times = math.min(times, math.max(1, math.floor(c.ceiling / c.unit)))
    end
  end
  for _, c in ipairs(counters) do
    if not c.checkOnly then
      c.cost = c.unit * times
    end
  end
  return times
end

local function fitting(counters, size)
  local fits = MAX_COUNT
  for index, c in ipairs(counters) do
    local at = size + 4 * index - 2
    local count, banMs = reply[at], reply[at + 2]
    if banMs > 0 or count + c.unit > c.ceiling then
      return 0
    elseif c.unit > 0 and not c.checkOnly then
      fits = math.min(fits, math.floor((c.ceiling - count) / c.unit))
    end
  end
  return fits
end

local function decidePart(counters, times)
  local size = #reply
  if times > 1 then
    times = takeTimes(counters, times)
    decideGroup(counters, times > 1)
    if reply[size + 1] == 0 and times > 1 then
      times = takeTimes(counters, math.max(1, fitting(counters, size)))
      undo()
      truncate(size)
      decideGroup(counters)
    end
  else
    takeTimes(counters, 1)
    decideGroup(counters)
  end
  reply[size + 1] = reply[size + 1] * times
  commit()
end

local function decideTimes(counters, times)
  while times > 0 do
    local at = #reply + 1
    if not try(decidePart, counters, times) or reply[at] == 0 then
      return
    end
    times = times - reply[at]
  end
end

-- `costIn(c, window, count)`: the cost to add in this window; 0 if the cost was charged in another window, or if the
-- count is too high for a refund.
local function costIn(c, window, count)
  local isDue = not c.chargedIn or c.chargedIn == window
  if c.upTo then
    isDue = count <= c.upTo - (window - c.chargedIn) * c.limit
  end
  return isDue and c.cost or 0
end

-- Adds the cost to a counter that does not roll over, and returns its count. The field saturates at 0
-- and at 2^63 - 1. A final step lowers a count above 2^53 - 1 to this number.
local function addFixed(c)
  local results = redis.call('BITFIELD', c.key, 'GET', 'u63', 0, 'OVERFLOW', 'SAT',
    'INCRBY', 'u63', 0, digits(costIn(c, c.window)))
  local before, after = results[1], results[2]
  local count = math.min(MAX_COUNT, after)
  undoSteps[#undoSteps + 1] = function()
    if before == 0 then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, digits(before))
    end
  end
  finalSteps[#finalSteps + 1] = function()
    if after > MAX_COUNT then
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, digits(MAX_COUNT))
    end
    if count == 0 then
      redis.call('DEL', c.key)
    elseif before == 0 then
      redis.call('PEXPIRE', c.key, digits(c.resetMs + EXPIRY_GRACE_MS))
    end
  end
  return count
end

-- Like `addFixed(c)`, for a counter that rolls over.
local function addRolling(c)
  local before, window = readCount(c)
  local count = math.min(MAX_COUNT, math.max(0, before + costIn(c, window, before)))
  if count ~= before then
    finalSteps[#finalSteps + 1] = function() writeRolling(c, count) end
  end
  return count
end

-- Renews a slot, or gives it back if the cost is negative. Returns the number of open slots.
local function adjustSlot(c)
  local count = readCount(c)
  if isOpen(c) then
    if c.cost < 0 then
      count = count - 1
    end
    finalSteps[#finalSteps + 1] = function() (c.cost < 0 and returnSlot or takeSlot)(c) end
  end
  return count
end

-- Adds the cost of each counter. Each counter must occur only once.
local function adjust(counters)
  reply[#reply + 1] = 1
  for _, c in ipairs(counters) do
    refuseFault(c)
    reply[#reply + 1] = (c.slot and adjustSlot or c.rollsOver and addRolling or addFixed)(c)
    reply[#reply + 1] = c.resetMs
    reply[#reply + 1] = readBanMs(c)
  end
  commit()
end

-- Removes the counters' bans, strikes and counts, except counts with `keepsCount`. Replies 1. Upstash bills a DEL of
-- many keys as one command. Each DEL has at most a thousand keys, because a Lua function takes only some thousand
-- values.
local function remove(counters)
  local keys = {}
  for _, c in ipairs(counters) do
    if not c.keepsCount then
      keys[#keys + 1] = refuseFault(c).key
      slotsByKey[c.key] = nil
    end
    keys[#keys + 1] = c.banKey
    keys[#keys + 1] = c.strikesKey
  end
  for at = 1, #keys, 1000 do
    redis.call('DEL', unpack(keys, at, math.min(at + 999, #keys)))
  end
  reply[#reply + 1] = 1
end

local function readGroup()
  local counters = {}
  for index = 1, nextArg() do
    counters[index] = readCounter()
    counters[index].unit = counters[index].cost
  end
  return counters
end

-- Runs all entries. The script reads the arguments of every entry, even if one fails.
reply[1] = now
for _ = 1, nextArg() do
  if not USES_REDIS_TIME then
    now = nextArg()
  end
  for _ = 1, nextArg() do
    local c = readCounter()
    local quota, window = nextArg(), nextArg()
    if window == c.window and not c.fault then
      pcall(returnUnused, c, quota)
    end
  end
  local adjusted = {}
  for index = 1, nextArg() do
    local c = readCounter()
    local limits = nextArg()
    c.chargedIn = limits > 0 and nextArg() or nil
    c.upTo = limits > 1 and nextArg() or nil
    adjusted[index] = c
  end
  if #adjusted > 0 then
    try(adjust, adjusted)
  end
  local removed = {}
  for index = 1, nextArg() do
    removed[index] = readCounter()
    removed[index].keepsCount = nextArg() == 1
  end
  if #removed > 0 then
    try(remove, removed)
  end
  local times, counters = nextArg(), readGroup()
  if #counters > 0 then
    decideTimes(counters, times)
  end
end
-- A key with a foreign value must not fail the work of other clients.
for key, slots in pairs(slotsByKey) do
  pcall(finishSlots, key, slots)
end

return reply
