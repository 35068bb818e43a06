#!/usr/bin/env node
/**
 * The command `weir` of the npm package. This file is plain JavaScript, so that an old version of Node
 * prints the required version, and not a syntax error. The package's engines field is the only place
 * with the required versions.
 */
var ranges = require("../package.json").engines.node.split(" || ");
var current = process.versions.node.split(".").map(Number);

/** Whether the current version is in a range, such as `^20.19.0` or `>=22.12.0`. */
function isInRange(range) {
  var oldest = partsOf(range);
  if (current[0] !== oldest[0]) return range.charAt(0) !== "^" && current[0] > oldest[0];
  return current[1] >= oldest[1];
}

function partsOf(range) {
  return /\d+\.\d+/.exec(range)[0].split(".").map(Number);
}

/** Returns a range as words. */
function wordsOf(range) {
  return partsOf(range).join(".") + (range.charAt(0) === "^" ? "" : " and newer");
}

if (ranges.some(isInRange)) {
  import("./weir.js");
} else {
  console.error(
    "weir needs Node " +
      ranges.map(wordsOf).join(", or ") +
      ", but this is Node " +
      process.versions.node +
      ". Install the LTS version from https://nodejs.org.",
  );
  process.exitCode = 1;
}
