// Prints the licence of every package that is in the vendored files, equal texts once.
// Run in a folder with node_modules: `make vendor` does.
import fs from "node:fs";

// What vega-lite's command line needs besides; it is in none of the files.
const commandLine = ["yargs", "@types/estree"];
const seen = new Map();
const texts = new Map();

function walk(name) {
  if (seen.has(name) || commandLine.includes(name)) return;
  const folder = `node_modules/${name}`;
  const about = JSON.parse(fs.readFileSync(`${folder}/package.json`));
  seen.set(name, about);
  const file = fs.readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
  const text = file
    ? fs.readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r", "").trim()
    : `${about.license}, ${about.author?.name ?? about.author ?? ""}`;
  texts.set(text, [...(texts.get(text) ?? []), `${name} ${about.version} (${about.license})`]);
  Object.keys(about.dependencies ?? {}).sort().forEach(walk);
}

Object.keys(JSON.parse(fs.readFileSync("package.json")).dependencies).sort().forEach(walk);
console.log(
  [...texts].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join(`\n\n${"-".repeat(72)}\n\n`),
);
