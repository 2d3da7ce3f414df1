
// A conversation is a tree: an edit or another answer is a new branch. `leaf` is the last message of the branch that is
// shown. Conversations are stored in this browser alone.

const byId = (id) => document.getElementById(id);
const kNumbers = ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed'];
const kGone = 'The server cannot be reached. What you wrote is kept.';

function stored(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem('weft.' + key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function keep(key, value) {
  try {
    localStorage.setItem('weft.' + key, JSON.stringify(value));
  } catch {
    notify('This browser has no room for more conversations: export and delete some.');
  }
}

const newId = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
let settings = stored('settings', {});
let chats = stored('chats', []).map((id) => stored('chat.' + id)).filter((chat) => chat?.messages);
let chat = null;      // the one that is shown
let running = null;   // {chat, message, abort}
let key = sessionStorage.getItem('weft.key') ?? '';

const saveList = () => keep('chats', chats.map((one) => one.id));
const saveChat = (one) => keep('chat.' + one.id, one);

// The messages from the first to the leaf.
function branch(one) {
  const path = [];
  for (let id = one.leaf; id; id = one.messages[id].parent) path.unshift(one.messages[id]);
  return path;
}

function add(one, parent, role, content) {
  const message = { id: newId(), parent, role, content };
  one.messages[message.id] = message;
  one.leaf = message.id;
  return message;
}

const siblings = (one, message) =>
  Object.values(one.messages).filter((other) => other.parent === message.parent && other.role === message.role);

function lastBelow(one, id) {
  for (let next; (next = Object.values(one.messages).filter((message) => message.parent === id).pop());) id = next.id;
  return id;
}

function notify(text) {
  byId('notice').textContent = text;
  byId('notice').hidden = !text;
}

// --- the server ---

async function ask(path, body, signal) {
  for (;;) {
    const headers = key ? { Authorization: 'Bearer ' + key } : {};
    if (body) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal });
    if (response.status === 401) {
      const given = await prompted(key ? 'The server does not know this key. Key:' : 'Key of the server:', '', 'password');
      if (given === null) throw new Error('The server wants a key.');
      sessionStorage.setItem('weft.key', key = given);
      continue;
    }
    if (response.ok) return response;
    const error = (await response.json().catch(() => ({}))).error;
    throw Object.assign(new Error(error?.message ?? `The server answers with status ${response.status}.`), { status: response.status });
  }
}

async function findModel() {
  try {
    const list = await (await ask('v1/models')).json();
    byId('model').textContent = list.data[0].id;
    byId('model').title = `${list.data[0].id}, context of ${list.data[0].max_model_len} tokens`;
    notify('');
  } catch (error) {
    const isLater = error.status === 503 || error instanceof TypeError;
    notify(error.status === 503 ? 'The model is loading.' : error instanceof TypeError ? kGone : error.message);
    if (isLater) setTimeout(findModel, 2000);
  }
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const events = held.split('\n\n');
    held = events.pop();
    for (const event of events) {
      if (!event.startsWith('data: ')) continue;
      const data = event.slice(6);
      if (data === '[DONE]') return;
      const json = JSON.parse(data);
      if (json.error) throw new Error(json.error.message);
      yield json;
    }
  }
}

function requestOf(one, upTo) {
  const messages = branch(one).filter((message) => message.id !== upTo && (message.content || message.role === 'user'))
    .map(({ role, content }) => ({ role, content }));
  if (settings.system) messages.unshift({ role: 'system', content: settings.system });
  const body = { messages, stream: true, stream_options: { include_usage: true } };
  for (const name of kNumbers) if (typeof settings[name] === 'number') body[name] = settings[name];
  if (settings.schema) {
    body.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: JSON.parse(settings.schema), strict: true } };
  }
  return body;
}

// Adds an answer after `parent` and fills it.
async function answer(one, parent) {
  const message = add(one, parent, 'assistant', '');
  const abort = new AbortController();
  running = { chat: one, message, abort };
  show();
  const begun = performance.now();
  let first = 0, last = 0;
  try {
    for await (const event of eventsOf(await ask('v1/chat/completions', requestOf(one, message.id), abort.signal))) {
      if (event.usage) message.usage = event.usage;
      const choice = event.choices[0];
      if (!choice) continue;
      const { content, reasoning } = choice.delta;
      if (content || reasoning) {
        last = performance.now();
        first ||= last;
      }
      message.content += content ?? '';
      if (reasoning) message.reasoning = (message.reasoning ?? '') + reasoning;
      if (choice.finish_reason) message.finish = choice.finish_reason;
      showLater();
    }
    if (!message.finish) message.error = 'The answer ended early: the connection is lost.';
    notify('');
  } catch (error) {
    if (error.name === 'AbortError') message.finish = 'stopped';
    else if (error instanceof TypeError) notify(message.error = kGone);
    else message.error = error.message;
  }
  if (first) {
    message.wait = (first - begun) / 1000;
    message.seconds = (last - first) / 1000;
  }
  running = null;
  saveChat(one);
  show();
}

// --- what is shown ---

function button(text, label, act) {
  return element('button', { className: 'plain', type: 'button', textContent: text, title: label, ariaLabel: label, onclick: act });
}

function stats(message) {
  const parts = [];
  if (message.finish === 'length') parts.push('cut at the limit of tokens');
  if (message.finish === 'stopped') parts.push('stopped');
  const tokens = message.usage?.completion_tokens;
  if (tokens) parts.push(`${tokens} tokens`);
  if (tokens > 1 && message.seconds) parts.push(`${((tokens - 1) / message.seconds).toFixed(1)} tokens/s`);
  if (message.wait) parts.push(`first after ${message.wait.toFixed(2)} s`);
  return element('span', { className: 'stats', textContent: parts.join(' · ') });
}

function toolsOf(message, node) {
  const tools = element('div', { className: 'tools' });
  const others = siblings(chat, message), at = others.indexOf(message);
  const go = (to) => { chat.leaf = lastBelow(chat, others[to].id); saveChat(chat); show(); };
  if (others.length > 1) {
    const back = button('‹', 'The version before', () => go(at - 1)), on = button('›', 'The next version', () => go(at + 1));
    [back.disabled, on.disabled] = [at === 0 || !!running, at === others.length - 1 || !!running];
    tools.append(back, `${at + 1}/${others.length}`, on);
  }
  const copy = button('Copy', 'Copy the text', () => navigator.clipboard.writeText(message.content));
  const again = message.role === 'user' ? button('Edit', 'Edit in a new branch', () => edit(message, node))
    : button('Again', 'Another answer in a new branch', () => answer(chat, message.parent));
  again.disabled = !!running;
  tools.append(copy, again);
  if (message.role === 'assistant') tools.append(stats(message));
  return tools;
}

function edit(message, node) {
  const text = element('textarea', { value: message.content, rows: 4, ariaLabel: 'Edited message' });
  const send = element('button', { className: 'main', textContent: 'Send' });
  const form = element('form', { className: 'edit' }, text,
    element('div', { className: 'row end' }, button('Cancel', 'Keep the message', show), send));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (text.value.trim() && !running) answer(chat, add(chat, message.parent, 'user', text.value).id);
  };
  text.onkeydown = (event) => { if (event.key === 'Escape') show(); else submitByEnter(event, form); };
  node.replaceChildren(form);
  text.focus();
}

function fill(node, message) {
  const isRunning = running?.message === message;
  const parts = [];
  if (message.reasoning) {
    const wasOpen = node.querySelector('details')?.open ?? false;
    parts.push(element('details', { open: wasOpen }, element('summary', { textContent: isRunning && !message.content ? 'Thinking …' : 'Thoughts' }),
      element('div', { className: 'thought', textContent: message.reasoning })));
  }
  const body = element('div', { className: 'body' });
  if (message.role === 'user') body.textContent = message.content;
  else body.append(...markdown(message.content || (isRunning && !message.reasoning ? '…' : '')));
  parts.push(body);
  if (message.error) parts.push(element('p', { className: 'error', textContent: message.error }));
  if (!isRunning) parts.push(toolsOf(message, node));
  node.replaceChildren(...parts);
}

function showList() {
  byId('chats').replaceChildren(...chats.map((one) => {
    const open = element('button', { className: 'open', textContent: one.title, title: one.title, onclick: () => { choose(one); } });
    if (one === chat) open.setAttribute('aria-current', 'true');
    const rename = button('✎', `Rename ${one.title}`, async () => {
      one.title = (await prompted('Name:', one.title)) || one.title;
      saveChat(one);
      show();
    });
    const remove = button('✕', `Delete ${one.title}`, async () => {
      if ((await prompted(`Delete “${one.title}”?`, null)) === null) return;
      if (running?.chat === one) running.abort.abort();
      chats = chats.filter((other) => other !== one);
      localStorage.removeItem('weft.chat.' + one.id);
      saveList();
      choose(one === chat ? chats[0] ?? null : chat);
    });
    for (const small of [rename, remove]) small.className = 'small';
    return element('li', { className: one === chat ? 'now' : '' }, open, rename, remove);
  }));
}

function show() {
  showList();
  byId('title').textContent = chat?.title ?? 'Weft';
  byId('send').hidden = !!running;
  byId('stop').hidden = !running;
  const nodes = chat ? branch(chat).map((message) => {
    const node = element('article', { className: `message ${message.role}`, id: 'm' + message.id });
    fill(node, message);
    return node;
  }) : [];
  if (!nodes.length) nodes.push(element('p', { className: 'empty', textContent: 'Write a message to begin. Conversations stay in this browser.' }));
  byId('log').replaceChildren(...nodes);
  byId('log').scrollTop = byId('log').scrollHeight;
}

// The answer that grows, at most once a frame. The view follows it unless it was scrolled away from the end.
let isDue = false;
function showLater() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const node = running && byId('m' + running.message.id);
    if (!node) return;
    const log = byId('log'), isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    fill(node, running.message);
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  });
}

function choose(one) {
  chat = one;
  document.body.classList.remove('listing');
  show();
  byId('text').focus();
}

// Asks in a dialog: the text, or null if it was cancelled. A null text asks for consent alone.
function prompted(question, text, type = 'text') {
  const dialog = byId('ask'), reply = byId('reply');
  byId('question').textContent = question;
  Object.assign(reply, { value: text ?? '', type, hidden: text === null });
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === 'ok' ? reply.value : null);
  });
}

// --- what people do ---

function grow() {
  byId('text').style.height = 'auto';
  byId('text').style.height = byId('text').scrollHeight + 2 + 'px';
}

function submitByEnter(event, form) {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
}

byId('composer').onsubmit = (event) => {
  event.preventDefault();
  const text = byId('text').value;
  if (!text.trim() || running) return;
  if (!chat) {
    chat = { id: newId(), title: text.trim().slice(0, 60), messages: {}, leaf: null };
    chats.unshift(chat);
    saveList();
  }
  byId('text').value = '';
  grow();
  const message = add(chat, chat.leaf, 'user', text);
  saveChat(chat);
  answer(chat, message.id);
};
byId('text').oninput = grow;
byId('text').onkeydown = (event) => submitByEnter(event, byId('composer'));
byId('stop').onclick = () => running?.abort.abort();
byId('new').onclick = () => choose(null);
byId('menu').onclick = () => { document.body.classList.add('listing'); byId('new').focus(); };
byId('hide').onclick = () => { document.body.classList.remove('listing'); byId('menu').focus(); };
document.onkeydown = (event) => {
  if (event.key !== 'Escape' || document.querySelector('dialog[open]')) return;
  if (document.body.classList.contains('listing')) byId('hide').onclick();
  else running?.abort.abort();
};

byId('export').onclick = () => {
  const blob = new Blob([JSON.stringify({ weft_conversations: chats }, null, 1)], { type: 'application/json' });
  const address = URL.createObjectURL(blob);
  element('a', { href: address, download: 'weft-conversations.json' }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};
byId('import').onclick = () => byId('file').click();
byId('file').onchange = async () => {
  try {
    const given = JSON.parse(await byId('file').files[0].text()).weft_conversations.map(cleaned);
    const ids = new Set(given.map((one) => one.id));
    chats = [...given, ...chats.filter((one) => !ids.has(one.id))];
    given.forEach(saveChat);
    saveList();
    notify('');
    choose(chats[0] ?? null);
  } catch {
    notify('This file has no conversations of Weft.');
  }
  byId('file').value = '';
};

// What an imported conversation may have; throws if it is none.
function cleaned({ id, title, messages, leaf }) {
  const text = (value) => { if (typeof value !== 'string') throw new Error(); return value; };
  const kept = {};
  for (const message of Object.values(messages)) {
    if (message.parent && !kept[message.parent]) throw new Error();
    kept[text(message.id)] = {
      ...message, role: message.role === 'user' ? 'user' : 'assistant', content: text(message.content),
      wait: Number(message.wait) || 0, seconds: Number(message.seconds) || 0,
    };
  }
  return { id: text(id), title: text(title), messages: kept, leaf: kept[leaf] ? leaf : null };
}

const applyTheme = () => { document.documentElement.dataset.theme = settings.theme ?? 'auto'; };

byId('settings').onclick = () => {
  const fields = byId('options').querySelector('form').elements;
  for (const name of ['system', 'schema', ...kNumbers]) fields[name].value = settings[name] ?? '';
  fields.theme.value = settings.theme ?? 'auto';
  byId('wrong').hidden = true;
  byId('options').showModal();
};
byId('options').querySelector('form').onsubmit = (event) => {
  if (event.submitter?.value !== 'ok') return;
  const fields = event.target.elements;
  try {
    const schema = fields.schema.value.trim();
    if (schema) JSON.parse(schema);
    settings = { system: fields.system.value, schema, theme: fields.theme.value };
    for (const name of kNumbers) if (fields[name].value !== '') settings[name] = Number(fields[name].value);
    keep('settings', settings);
    applyTheme();
  } catch {
    event.preventDefault();
    byId('wrong').textContent = 'The schema is not JSON.';
    byId('wrong').hidden = false;
  }
};

applyTheme();
choose(chats[0] ?? null);
findModel();
