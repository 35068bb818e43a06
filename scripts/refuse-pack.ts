/**
 * The script `prepack`, which npm runs before `npm pack` and `npm publish`. It refuses both
 * commands, because they would pack the repository's root, whose package.json points at TypeScript.
 * npm also runs this script before `npm run pack`, which this script allows.
 */
const command = process.env.npm_command ?? "";

if (["pack", "publish"].includes(command)) {
  console.error(`npm ${command} would pack the sources. The package is a folder of its own:`);
  console.error("  npm run pack                   builds dist/package and packs it");
  console.error("  npm publish ./dist/package     publishes it after that");
  process.exitCode = 1;
}
