
'use strict';

// Markdown to elements. Text of a model only ever becomes text nodes: no HTML is parsed, and there are no images.

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const kInline = /(`+)([^]*?[^`])\1(?!`)|\*\*(\S|\S[^]*?\S)\*\*(?!\*)|\*([^\s*]|[^\s*][^*]*?[^\s*])\*|(?<!\w)_([^\s_]|[^\s_][^_]*?[^\s_])_(?!\w)|~~([^~]+)~~|\[([^\][]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]])/;

function link(address, ...children) {
  if (!/^(https?:|mailto:)/i.test(address)) return null;
  return element('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, ...children);
}

function inline(text) {
  const nodes = [];
  for (let match; (match = kInline.exec(text)); text = text.slice(match.index + match[0].length)) {
    if (match.index) nodes.push(text.slice(0, match.index));
    const [whole, , code, bold, italic, under, struck, label, address, bare] = match;
    if (code !== undefined) nodes.push(element('code', { textContent: code }));
    else if (bold !== undefined) nodes.push(element('strong', {}, ...inline(bold)));
    else if (italic ?? under) nodes.push(element('em', {}, ...inline(italic ?? under)));
    else if (struck !== undefined) nodes.push(element('s', {}, ...inline(struck)));
    else if (label !== undefined) nodes.push(link(address, ...inline(label)) ?? whole);
    else nodes.push(link(bare, bare));
  }
  if (text) nodes.push(text);
  return nodes;
}

function codeBlock(language, text) {
  const copy = element('button', { className: 'plain', type: 'button', textContent: 'Copy' });
  copy.onclick = async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = 'Copied';
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  };
  return element('div', { className: 'code' }, element('div', {}, element('span', { textContent: language }), copy),
    element('pre', {}, element('code', { textContent: text })));
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, '|'));
}

function table(lines) {
  const rowOf = (line, name) => element('tr', {}, ...cells(line).map((cell) => element(name, {}, ...inline(cell))));
  return element('div', { className: 'scroll' }, element('table', {}, element('thead', {}, rowOf(lines[0], 'th')),
    element('tbody', {}, ...lines.slice(2).map((line) => rowOf(line, 'td')))));
}

const kItem = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)(.*)$/;
const kFence = /^\s{0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const kRule = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;

// Items of one list: those with the indentation of the first. Deeper lines belong to the item before them.
function list(lines, depth) {
  const first = kItem.exec(lines[0]);
  const isOrdered = /\d/.test(first[2]);
  const made = element(isOrdered ? 'ol' : 'ul', isOrdered ? { start: parseInt(first[2], 10) } : {});
  let inside = [];
  const end = () => { if (made.lastChild) made.lastChild.append(...blocks(inside, depth + 1)); inside = []; };
  for (const line of lines) {
    const item = kItem.exec(line);
    if (item && item[1].length <= first[1].length + 1) {
      end();
      made.append(element('li'));
      inside.push(item[3]);
    } else {
      inside.push(line.replace(new RegExp(`^\\s{0,${first[1].length + first[2].length + 1}}`), ''));
    }
  }
  end();
  return made;
}

function blocks(lines, depth = 0) {
  if (depth > 20) return [element('p', { textContent: lines.join('\n') })];
  const made = [];
  const startsBlock = (line) => !line.trim() || kFence.test(line) || kItem.test(line) || kRule.test(line) ||
    /^\s{0,3}(#{1,6}\s|>)/.test(line);
  for (let at = 0; at < lines.length;) {
    const line = lines[at], begin = at;
    const takeWhile = (holds) => { while (at < lines.length && holds(lines[at])) ++at; return lines.slice(begin, at); };
    const fence = kFence.exec(line), heading = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      ++at;
    } else if (fence) {
      ++at;
      const inside = takeWhile((next) => !(next.trim().startsWith(fence[1]) && !next.trim().replace(/[`~]/g, ''))).slice(1);
      ++at;
      made.push(codeBlock(fence[2].trim(), inside.join('\n')));
    } else if (heading) {
      ++at;
      made.push(element(`h${heading[1].length}`, {}, ...inline(heading[2])));
    } else if (kRule.test(line)) {
      ++at;
      made.push(element('hr'));
    } else if (/^\s{0,3}>/.test(line)) {
      const inside = takeWhile((next) => next.trim() && /^\s{0,3}>/.test(next)).map((next) => next.replace(/^\s*> ?/, ''));
      made.push(element('blockquote', {}, ...blocks(inside, depth + 1)));
    } else if (kItem.test(line)) {
      let wasBlank = false;
      const inside = takeWhile((next) => {
        const belongs = kItem.test(next) ? !kRule.test(next) : !next.trim() || /^\s{2,}/.test(next) || !(wasBlank || startsBlock(next));
        wasBlank = !next.trim();
        return belongs;
      });
      made.push(list(inside, depth));
    } else if (line.includes('|') && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? '') && lines[at + 1].includes('-')) {
      made.push(table(takeWhile((next) => next.includes('|'))));
    } else {
      ++at;
      while (at < lines.length && !startsBlock(lines[at])) ++at;
      const paragraph = element('p');
      lines.slice(begin, at).forEach((part, i) => paragraph.append(...(i ? [element('br')] : []), ...inline(part.trim())));
      made.push(paragraph);
    }
  }
  return made;
}

const markdown = (text) => blocks(text.split('\n'));
