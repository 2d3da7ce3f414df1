# cmake -DFILES=LIBRARIES -DOUTPUT=FILE -P write_build_stamp.cmake: writes a source with a hash of these files.

set(all "")
foreach(file IN LISTS FILES)
  file(SHA1 ${file} hash)
  string(APPEND all "${hash}\n")
endforeach()
string(SHA1 stamp "${all}")
file(WRITE ${OUTPUT} "namespace weft {
const char* build_stamp();
const char* build_stamp() { return \"${stamp}\"; }
}  // namespace weft
")
