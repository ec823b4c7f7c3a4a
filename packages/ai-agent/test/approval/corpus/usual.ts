/** Lines as sessions have them, in the repository of `losing.test.ts`. */
export const usual = String.raw`
ls -la
pwd && ls
cat package.json
head -50 src/main.c
tail -n 20 app.log
wc -l src/*.c
tree -L 2
find . -name '*.c' -not -path './node_modules/*'
find src -type f | head
find . -type f -name '*.md' -exec grep -l TODO {} +
find . -name '*.o' -newer Makefile -print
grep -rn main src
rg -n 'TODO|FIXME' src
rg --files | head -20
which python3 node
python3 --version
node --version && npm --version
git status
git status --short
git log --oneline -5
git log -p -1
git diff
git diff --stat HEAD
git diff HEAD~1 -- kept.txt
git show HEAD
git show HEAD:kept.txt
git branch -a
git branch feature
git checkout -b feature-2
git checkout main
git checkout -
git checkout HEAD~1
git checkout kept.txt
git checkout -- Makefile
git switch -c other
git switch main
git restore kept.txt
git restore --staged .
git add -A
git add src/main.c
git add -p
git commit -m "Add tests"
git commit -am wip
git commit --amend --no-edit
git stash
git stash list
git stash pop
git pull --rebase
git fetch origin
git push origin main
git push -u origin feature
git merge feature
git rebase main
git rebase --continue
git cherry-pick abc123
git revert --no-edit HEAD
git tag v1.0
git remote -v
git remote add origin https://example.org/x.git
git config user.name Ada
git init -q new-project
git clone https://example.org/x.git
git blame kept.txt
git rev-parse HEAD
git ls-files
git reset HEAD kept.txt
git reset --soft HEAD~1
git mv kept.txt src/kept.txt
git rm kept.txt
git rm --cached kept.txt
git clean -n
git submodule update --init --recursive
git worktree add ../tree
git apply --check fix.patch
git format-patch -1
git bisect start
npm install
npm ci
npm test
npm run build
npm run lint -- --fix
npx tsc --noEmit
npx prettier --write src
pnpm install --frozen-lockfile
yarn add lodash
node index.js
node -e 'console.log(1 + 1)'
python3 -m venv .venv
source .venv/bin/activate && pip install -r requirements.txt
pip install requests
pip list
python3 main.py
python3 -m pytest -q
pytest tests/test_a.py -k name
python3 - <<'END'\nprint(1)\nEND
python3 -c 'import json; print(json.load(open("package.json"))["name"])'
make
make clean
make -j4 test
cmake -S . -B out
cmake --build out
gcc -O2 -o prog src/main.c
gcc -Wall -g src/main.c -o prog && ./prog
g++ -std=c++20 a.cpp
cargo build --release
cargo test
go build ./...
go test ./...
go mod tidy
mvn -q package
./gradlew build
./run.sh
bash run.sh
sh -c 'echo hi'
chmod +x run.sh
mkdir -p src/lib tests
touch src/new.c
cp kept.txt copy.txt
cp -r src src-copy
cp -n kept.txt copy.txt
cp Makefile Makefile.bak
cp package.json /tmp/
mv kept.txt renamed.txt
mv src/main.c src/app.c
mv notes.md docs.md
mkdir old && mv draft old/
ln -s kept.txt link
ln -s ../repo/kept.txt draft/link
rm kept.txt
rm -f missing.txt
rm -rf missing-folder
rm -rf node_modules
rm -rf build
rm -rf dist && npm run build
rm -f *.o
rmdir empty
cat > new.txt <<'END'\nhello\nEND
cat > src/new.c <<'END'\nint x;\nEND
cat > notes.md <<'END'\nnew\nEND
echo hello > hello.txt
echo "x=1" >> .env
printf '%s\n' a b > list.txt
echo done >> app.log
npm test > out.log 2>&1
npm test 2>&1 | tee test-output.txt
npm test 2>&1 | tail -20
make 2>&1 | tee -a app.log
./prog < data.csv > result.csv
sort data.csv
sort -u data.csv | head
sort -k2 -n data.csv > sorted.csv
sort -t, -k1,1 data.csv -o sorted.csv
uniq -c sorted.txt
sort data.csv | uniq -c | sort -rn | head
cut -d, -f1 data.csv
awk -F, '{print $2}' data.csv
awk '$3 > 100 {print $1}' data.csv
awk 'BEGIN{s=0} {s+=$1} END{print s}' data.csv
sed -n 1,20p src/main.c
sed 's/foo/bar/g' kept.txt
sed -i 's/foo/bar/' kept.txt
sed -i 's/foo/bar/' notes.md
sed -i.bak 's/foo/bar/' kept.txt
sed "s/VERSION/$V/" kept.txt
tr a-z A-Z < kept.txt
diff kept.txt notes.md
diff -u kept.txt notes.md > changes.diff
patch -p1 < fix.patch
jq . package.json
jq '.name' package.json > name.txt
jq '.version = "2"' package.json > tmp.json && mv tmp.json package.json
xargs -n1 echo < data.csv
ls *.md | xargs wc -l
find . -name '*.tmp' -delete
find src -name '*.c' | xargs grep -n main
find . -name '*.sh' -exec chmod +x {} \;
for f in src/*.c; do echo "$f"; done
for f in src/*.c; do gcc -c "$f"; done
while read -r line; do echo "$line"; done < data.csv
if [ -f kept.txt ]; then echo yes; fi
test -d build || mkdir build
export PATH=$PATH:$HOME/bin
export NODE_ENV=test
cd src && make
cd src && ls
cd .. && ls
tar czf out.tar.gz src
tar -czf release.tgz src Makefile
tar tf a.tar
tar xzf missing.tgz
mkdir x && tar xf a.tar -C x
tar xf a.tar -C /tmp/x
tar -xf a.tar -C new-folder --strip-components=1
zip -r out.zip src
zip -r out.zip . -x 'node_modules/*'
unzip -l a.zip
unzip a.zip -d out-of-zip
gzip -k kept.txt
gzip -c data.csv > data.csv.gz
gunzip -c old.gz
curl -s http://localhost:3000/health
curl -sS -X POST -H 'Content-Type: application/json' -d '{"a":1}' http://localhost:3000/api
curl -fsSL https://example.org/install.sh -o install.sh
curl -LO https://example.org/data.zip
curl -I http://localhost:8080
wget -q https://example.org/file.txt
wget -O page.html https://example.org
ps aux | grep node
kill %1
sleep 2
npm start > server.log 2>&1 &
timeout 10 node server.js
time make
env | sort
df -h && free -m
du -sh .
date +%F
sqlite3 app.db '.tables'
sqlite3 app.db < schema.sql
docker ps
openssl rand -hex 16
base64 kept.txt
sha256sum kept.txt
file kept.txt
xxd kept.txt | head
tee config.json < package.json
dd if=/dev/zero of=blob.bin bs=1M count=1
split -l 100 data.csv part_
rsync -a src/ backup/
`
  .trim()
  .split('\n')
  .map((line) => line.replaceAll('\\n', '\n').replaceAll("'%s\n'", String.raw`'%s\n'`))
