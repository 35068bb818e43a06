#!/usr/bin/env node
/**
 * The command `weir` of the npm package. This file is plain JavaScript, so that an old version of Node
 * prints the required version, and not a syntax error. The package's engines field is the only place
 * with the required version.
 */
var engines = require("../package.json").engines;
var required = /\d+\.\d+/.exec(engines.node)[0].split(".").map(Number);
var current = process.versions.node.split(".").map(Number);

if (current[0] > required[0] || (current[0] === required[0] && current[1] >= required[1])) {
  import("./weir.js");
} else {
  console.error(
    "weir needs Node " +
      required.join(".") +
      " or newer, but this is Node " +
      process.versions.node +
      ". Install the LTS version from https://nodejs.org.",
  );
  process.exitCode = 1;
}
