"""Cases of functions without communication, of communicator creation, windows, files, errors and error handlers."""

CASES = {}

CASES['groups'] = '''  MPI_Group world, a, b, c;
  int n, r, ranks[2] = {0, 2}, both[2] = {0, 1}, translated[2], ranges[1][3] = {{0, 3, 2}}, relation;
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &world);
  CALL(MPI_Group_incl, world, 2, ranks, &a);
  CALL(MPI_Group_excl, world, 2, ranks, &b);
  CALL(MPI_Group_size, a, &n);
  CALL(MPI_Group_rank, a, &r);
  CALL(MPI_Group_translate_ranks, a, 2, both, world, translated);
  RESULT("%d %d %d", n, r == MPI_UNDEFINED ? -1 : r, translated[0]);
  CALL(MPI_Group_union, a, b, &c);
  CALL(MPI_Group_compare, c, world, &relation);
  RESULT("%d", relation == MPI_SIMILAR);
  CALL(MPI_Group_free, &c);
  CALL(MPI_Group_intersection, a, world, &c);
  CALL(MPI_Group_free, &c);
  CALL(MPI_Group_difference, world, a, &c);
  CALL(MPI_Group_free, &c);
  CALL(MPI_Group_range_incl, world, 1, ranges, &c);
  CALL(MPI_Group_free, &c);
  CALL(MPI_Group_range_excl, world, 1, ranges, &c);
  CALL(MPI_Group_free, &c);
  CALL(MPI_Group_free, &a);
  CALL(MPI_Group_free, &b);
  CALL(MPI_Group_free, &world);
'''
CASES['communicator_queries'] = '''  int n, flag, relation, length;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Group group;
  CALL(MPI_Comm_size, halves, &n);
  CALL(MPI_Comm_rank, halves, &flag);
  CALL(MPI_Comm_compare, halves, MPI_COMM_WORLD, &relation);
  CALL(MPI_Comm_test_inter, inter, &flag);
  CALL(MPI_Comm_remote_size, inter, &length);
  RESULT("%d %d %d %d", n, relation == MPI_UNEQUAL, flag, length);
  CALL(MPI_Comm_remote_group, inter, &group);
  CALL(MPI_Group_free, &group);
  CALL(MPI_Comm_set_name, halves, "half");
  CALL(MPI_Comm_get_name, halves, name, &length);
  RESULT("%s %d", name, length);
  MPI_Info info;
  CALL(MPI_Comm_get_info, halves, &info);
  CALL(MPI_Comm_set_info, halves, info);
  CALL(MPI_Info_free, &info);
'''
CASES['communicator_creation'] = '''  MPI_Comm made, other;
  MPI_Group group, odd;
  MPI_Request request;
  const int members[2] = {1, 3};
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &made);
  CALL(MPI_Barrier, made);
  CALL(MPI_Comm_free, &made);
  CALL(MPI_Comm_dup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &made);
  CALL(MPI_Comm_disconnect, &made);
  CALL(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  CALL(MPI_Comm_free, &made);
  EVENTS("coll", 4);
  EVENTS("commCreate", 3);
  EVENTS("commFree", 3);
  CALL(MPI_Comm_idup, MPI_COMM_WORLD, &made, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  CALL(MPI_Comm_free, &made);
  EVENTS("icoll", 1);
  EVENTS("wait", 1);
  EVENTS("commCreate", 1);
  EVENTS("commFree", 1);
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &group);
  CALL(MPI_Group_incl, group, 2, members, &odd);
  CALL(MPI_Comm_create, MPI_COMM_WORLD, odd, &made);
  EVENTS("coll", 1);
  if (rank % 2 == 1) {
    CALL(MPI_Comm_create_group, MPI_COMM_WORLD, odd, 3, &other);
    CALL(MPI_Comm_free, &other);
    CALL(MPI_Comm_free, &made);
    EVENTS("coll", 1);
    EVENTS("commCreate", 2);
    EVENTS("commFree", 2);
  }
  CALL(MPI_Group_free, &odd);
  CALL(MPI_Group_free, &group);
  CALL(MPI_Intercomm_merge, inter, rank % 2, &made);
  CALL(MPI_Comm_free, &made);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  EVENTS("commFree", 1);
'''
CASES['topologies'] = '''  int dims[2] = {0, 0}, periods[2], coords[2], n, d, index[4], edges[8], neighbours[4], weights[4], weighted;
  int source, dest, remain[2] = {0, 1};
  MPI_Comm made;
  CALL(MPI_Dims_create, size, 2, dims);
  CALL(MPI_Cartdim_get, cart, &d);
  CALL(MPI_Cart_get, cart, 2, dims, periods, coords);
  CALL(MPI_Cart_rank, cart, coords, &n);
  CALL(MPI_Cart_coords, cart, n, 2, coords);
  CALL(MPI_Cart_shift, cart, 0, 1, &source, &dest);
  CALL(MPI_Cart_map, MPI_COMM_WORLD, 2, dims, periods, &n);
  RESULT("%d %d %d %d %d", d, coords[0], coords[1], source, dest);
  CALL(MPI_Cart_sub, cart, remain, &made);
  CALL(MPI_Comm_free, &made);
  CALL(MPI_Topo_test, graph, &n);
  CALL(MPI_Graphdims_get, graph, &n, &d);
  CALL(MPI_Graph_get, graph, n, d, index, edges);
  CALL(MPI_Graph_neighbors_count, graph, rank, &n);
  CALL(MPI_Graph_neighbors, graph, rank, n, neighbours);
  RESULT("%d %d %d", n, d, neighbours[0]);
  CALL(MPI_Graph_map, MPI_COMM_WORLD, size, index, edges, &n);
  CALL(MPI_Dist_graph_neighbors_count, adjacent, &n, &d, &weighted);
  CALL(MPI_Dist_graph_neighbors, adjacent, n, neighbours, weights, d, coords, weights);
  RESULT("%d %d %d", n, d, neighbours[0]);
  n = 1;
  dest = (rank + 1) % size;
  CALL(MPI_Dist_graph_create, MPI_COMM_WORLD, 1, &rank, &n, &dest, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  CALL(MPI_Comm_free, &made);
  EVENTS("coll", 2);
  EVENTS("commCreate", 2);
  EVENTS("commFree", 2);
'''
CASES['attributes'] = '''  int keyval, flag, value = 5, *found;
  CALL(MPI_Comm_create_keyval, MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  CALL(MPI_Comm_set_attr, halves, keyval, &value);
  CALL(MPI_Comm_get_attr, halves, keyval, &found, &flag);
  RESULT("%d %d", flag, *found);
  CALL(MPI_Comm_delete_attr, halves, keyval);
  CALL(MPI_Comm_free_keyval, &keyval);
  CALL(MPI_Type_create_keyval, MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
  CALL(MPI_Type_set_attr, vector, keyval, &value);
  CALL(MPI_Type_get_attr, vector, keyval, &found, &flag);
  CALL(MPI_Type_delete_attr, vector, keyval);
  CALL(MPI_Type_free_keyval, &keyval);
  CALL(MPI_Comm_get_attr, MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
  RESULT("%d %d", flag, *found > 32766);
'''
CASES['datatypes'] = '''  MPI_Datatype a, b, c;
  int n, lengths[2] = {1, 2}, places[2] = {0, 3}, sizes[2] = {4, 4}, subsizes[2] = {2, 2}, starts[2] = {1, 1};
  int integers, addresses, types, combiner, dims[2] = {2, 2}, distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
  int dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  MPI_Aint bytes_at[2] = {0, 24}, lower, extent;
  MPI_Count big, big_lower;
  char name[MPI_MAX_OBJECT_NAME];
  int all_integers[8];
  MPI_Aint all_addresses[8];
  MPI_Datatype all_types[8];
  CALL(MPI_Type_contiguous, 3, MPI_INT, &a);
  CALL(MPI_Type_commit, &a);
  CALL(MPI_Type_size, a, &n);
  CALL(MPI_Type_size_x, a, &big);
  CALL(MPI_Type_get_extent, a, &lower, &extent);
  CALL(MPI_Type_get_extent_x, a, &big_lower, &big);
  CALL(MPI_Type_get_true_extent, a, &lower, &extent);
  CALL(MPI_Type_get_true_extent_x, a, &big_lower, &big);
  RESULT("%d %ld %ld", n, (long)extent, (long)big);
  CALL(MPI_Type_get_envelope, a, &integers, &addresses, &types, &combiner);
  CALL(MPI_Type_get_contents, a, integers, addresses, types, all_integers, all_addresses, all_types);
  RESULT("%d %d %d", integers, types, all_integers[0]);
  CALL(MPI_Type_set_name, a, "three");
  CALL(MPI_Type_get_name, a, name, &n);
  CALL(MPI_Type_dup, a, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_indexed, 2, lengths, places, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_hindexed, 2, lengths, bytes_at, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_indexed_block, 2, 2, places, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_hindexed_block, 2, 2, bytes_at, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_hvector, 2, 1, 32, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_subarray, 2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_darray, size, rank, 2, sizes, distribs, dargs, dims, MPI_ORDER_C, MPI_INT, &b);
  CALL(MPI_Type_free, &b);
  CALL(MPI_Type_create_resized, a, 0, 64, &c);
  CALL(MPI_Type_size, c, &n);
  RESULT("%d", n);
  CALL(MPI_Type_free, &c);
  CALL(MPI_Type_match_size, MPI_TYPECLASS_INTEGER, 4, &c);
  CALL(MPI_Type_free, &a);
'''
CASES['packing'] = '''  int at = 0, n, two[2] = {rank, 9}, back[2] = {0, 0};
  MPI_Aint external_at = 0, external;
  CALL(MPI_Pack_size, 2, MPI_INT, MPI_COMM_WORLD, &n);
  CALL(MPI_Pack, two, 2, MPI_INT, out, kBytes, &at, MPI_COMM_WORLD);
  n = at;
  at = 0;
  CALL(MPI_Unpack, out, n, &at, back, 2, MPI_INT, MPI_COMM_WORLD);
  RESULT("%d %d %d", n, back[0], back[1]);
  CALL(MPI_Pack_external_size, "external32", 2, MPI_INT, &external);
  CALL(MPI_Pack_external, "external32", two, 2, MPI_INT, out, kBytes, &external_at);
  external_at = 0;
  CALL(MPI_Unpack_external, "external32", out, external, &external_at, back, 2, MPI_INT);
  RESULT("%ld %d", (long)external, back[1]);
  CALL(MPI_Sendrecv, out, 8, MPI_PACKED, (rank + 1) % size, 0, in, 8, MPI_PACKED, (rank + size - 1) % size, 0,
       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EVENTS("send", 1);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
'''
CASES['operations'] = '''  MPI_Op op;
  int flag, a[2] = {rank, 1}, b[2] = {0, 0};
  CALL(MPI_Op_create, add_twice, 1, &op);
  CALL(MPI_Op_commutative, op, &flag);
  CALL(MPI_Allreduce, a, b, 2, MPI_INT, op, MPI_COMM_WORLD);
  RESULT("%d %d", flag, b[1] > 0);
  CALL(MPI_Op_free, &op);
  CALL(MPI_Reduce_local, a, b, 2, MPI_INT, MPI_SUM);
  EVENTS("coll", 1);
'''
CASES['statuses'] = '''  MPI_Status status;
  int n;
  MPI_Count big;
  memset(&status, 0, sizeof(status));
  CALL(MPI_Status_set_elements, &status, MPI_INT, 3);
  CALL(MPI_Status_set_elements_x, &status, MPI_INT, 3);
  CALL(MPI_Status_set_cancelled, &status, 1);
  CALL(MPI_Get_count, &status, MPI_INT, &n);
  CALL(MPI_Get_elements, &status, MPI_INT, &n);
  CALL(MPI_Get_elements_x, &status, MPI_INT, &big);
  CALL(MPI_Test_cancelled, &status, &n);
  RESULT("%ld %d", (long)big, n);
'''
CASES['info'] = '''  MPI_Info info, copy;
  int n, length, flag;
  char value[64], key[MPI_MAX_INFO_KEY];
  CALL(MPI_Info_create, &info);
  CALL(MPI_Info_set, info, "color", "blue");
  CALL(MPI_Info_dup, info, &copy);
  CALL(MPI_Info_get, copy, "color", 63, value, &flag);
  CALL(MPI_Info_get_valuelen, copy, "color", &length, &flag);
  CALL(MPI_Info_get_nkeys, copy, &n);
  CALL(MPI_Info_get_nthkey, copy, 0, key);
  RESULT("%s %d %d %s", value, length, n, key);
  CALL(MPI_Info_delete, copy, "color");
  CALL(MPI_Info_free, &copy);
  CALL(MPI_Info_free, &info);
'''
CASES['environment'] = '''  int a, b, flag;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  void* memory;
  MPI_Aint address;
  CALL(MPI_Get_version, &a, &b);
  CALL(MPI_Get_library_version, text, &flag);
  RESULT("%d.%d %.8s", a, b, text);
  CALL(MPI_Get_processor_name, text, &a);
  CALL(MPI_Initialized, &flag);
  CALL(MPI_Finalized, &a);
  CALL(MPI_Query_thread, &b);
  RESULT("%d %d %d", flag, a, b);
  CALL(MPI_Is_thread_main, &flag);
  CALL(MPI_Alloc_mem, 100, MPI_INFO_NULL, &memory);
  CALL(MPI_Free_mem, memory);
  CALL(MPI_Get_address, &a, &address);
  CALL(MPI_Error_string, MPI_ERR_RANK, text, &a);
  RESULT("%s", text);
  CALL(MPI_Error_class, MPI_ERR_RANK, &a);
  CALL(MPI_Add_error_class, &a);
  CALL(MPI_Add_error_code, a, &b);
  CALL(MPI_Add_error_string, b, "ours");
  CALL(MPI_Error_string, b, text, &a);
  RESULT("%s", text);
  lbf_add(0, "MPI_Wtime", 1);
  lbf_add(0, "MPI_Wtick", 1);
  RESULT("%d %d", MPI_Wtime() > 0, MPI_Wtick() > 0);
  CALL(MPI_Pcontrol, 2);
  EVENTS("phase", 1);
'''
CASES['handles'] = '''#ifndef STANDARD_ABI /* has none of these */
  RESULT("%d", MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
  RESULT("%d", MPI_Type_f2c(MPI_Type_c2f(MPI_INT)) == MPI_INT);
  RESULT("%d", MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
  RESULT("%d", MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
  RESULT("%d", MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
  RESULT("%d", MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
  RESULT("%d", MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_NULL)) == MPI_INFO_NULL);
  RESULT("%d", MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
  RESULT("%d", MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
  RESULT("%d", MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NULL)) == MPI_MESSAGE_NULL);
  MPI_Status status, again;
  MPI_Fint fortran[32];
  memset(&status, 0, sizeof(status));
  status.MPI_TAG = 77;
  CALL(MPI_Status_c2f, &status, fortran);
  CALL(MPI_Status_f2c, fortran, &again);
  RESULT("%d", again.MPI_TAG);
''' + ''.join(f'  lbf_add(0, "MPI_{kind}_{way}", 1);\n' for kind in
              ('Comm', 'Type', 'Group', 'Op', 'Request', 'Errhandler', 'Info', 'File', 'Win', 'Message')
              for way in ('f2c', 'c2f')) + '#endif\n'
CASES['error_handlers'] = '''  MPI_Errhandler handler, before;
  CALL(MPI_Comm_create_errhandler, count_errors, &handler);
  CALL(MPI_Comm_get_errhandler, MPI_COMM_WORLD, &before);
  CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, handler);
  errors_handled = 0;
  CODE(MPI_Send, out, 1, MPI_INT, 999, 0, MPI_COMM_WORLD);
  CODE(MPI_Irecv, in, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &(MPI_Request){0});
  CALL(MPI_Comm_call_errhandler, MPI_COMM_WORLD, MPI_ERR_OTHER);
  RESULT("handled %d", errors_handled);
  CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, before);
  CALL(MPI_Errhandler_free, &handler);
'''
CASES['windows'] = '''  MPI_Win win;
  MPI_Group group;
  MPI_Info info;
  MPI_Errhandler handler;
  int keyval, flag, n, *memory, unit;
  MPI_Aint bytes;
  char name[MPI_MAX_OBJECT_NAME];
  CALL(MPI_Win_allocate, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  CALL(MPI_Win_get_group, win, &group);
  CALL(MPI_Group_size, group, &n);
  CALL(MPI_Group_free, &group);
  CALL(MPI_Win_set_name, win, "w");
  CALL(MPI_Win_get_name, win, name, &flag);
  RESULT("%d %s", n, name);
  CALL(MPI_Win_get_info, win, &info);
  CALL(MPI_Win_set_info, win, info);
  CALL(MPI_Info_free, &info);
  CALL(MPI_Win_create_keyval, MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
  CALL(MPI_Win_set_attr, win, keyval, &n);
  CALL(MPI_Win_get_attr, win, keyval, &memory, &flag);
  CALL(MPI_Win_delete_attr, win, keyval);
  CALL(MPI_Win_free_keyval, &keyval);
  CALL(MPI_Win_create_errhandler, ignore_window_errors, &handler);
  CALL(MPI_Win_set_errhandler, win, handler);
  CALL(MPI_Win_call_errhandler, win, MPI_ERR_OTHER);
  CALL(MPI_Errhandler_free, &handler);
  CALL(MPI_Win_get_errhandler, win, &handler);
  CODE(MPI_Put, out, 1, MPI_INT, 999, 0, 1, MPI_INT, win);
  CALL(MPI_Errhandler_free, &handler);
  CALL(MPI_Win_fence, 0, win);
  CALL(MPI_Win_free, &win);
  MPI_Comm node;
  CALL(MPI_Comm_split, MPI_COMM_WORLD, 0, rank, &node);
  CALL(MPI_Win_allocate_shared, 64, 4, MPI_INFO_NULL, node, &memory, &win);
  CALL(MPI_Win_shared_query, win, 0, &bytes, &unit, &memory);
  RESULT("%ld %d", (long)bytes, unit);
  CALL(MPI_Win_free, &win);
  CALL(MPI_Comm_free, &node);
  EVENTS("coll", 6);
  EVENTS("commCreate", 3);
  EVENTS("commFree", 3);
  EVENTS("oneSidedSync", 3);
'''
CASES['files'] = '''  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  MPI_Offset offset;
  MPI_Group group;
  MPI_Info info;
  MPI_Datatype etype, filetype;
  MPI_Aint extent;
  MPI_Errhandler handler;
  int flag, n = 0;
  char path[4096], representation[MPI_MAX_DATAREP_STRING];
  snprintf(path, sizeof(path), "%s/%s", folder, case_name);
  CODE(MPI_File_open, MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  CALL(MPI_File_open, MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file); ++n;
  fill(1);
  CALL(MPI_File_preallocate, file, 4096); ++n;
  CALL(MPI_File_set_size, file, 4096); ++n;
  CALL(MPI_File_get_size, file, &offset); ++n;
  RESULT("%ld", (long)offset);
  CALL(MPI_File_set_view, file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL); ++n;
  CALL(MPI_File_get_view, file, &offset, &etype, &filetype, representation);
  CALL(MPI_File_get_type_extent, file, MPI_INT, &extent);
  CALL(MPI_File_get_group, file, &group);
  CALL(MPI_Group_free, &group);
  CALL(MPI_File_get_info, file, &info);
  CALL(MPI_File_set_info, file, info); ++n;
  CALL(MPI_Info_free, &info);
  CALL(MPI_File_get_amode, file, &flag);
  CALL(MPI_File_set_atomicity, file, 0); ++n;
  CALL(MPI_File_get_atomicity, file, &flag);
  CALL(MPI_File_get_byte_offset, file, 3, &offset);
  RESULT("%ld", (long)offset);
  CALL(MPI_File_write_at, file, rank * 16, out, 16, MPI_INT, &status); ++n;
  CALL(MPI_File_write_at_all, file, 64 + rank * 16, out, 16, MPI_INT, MPI_STATUS_IGNORE); ++n;
  CALL(MPI_File_sync, file); ++n;
  CALL(MPI_File_read_at, file, rank * 16, in, 16, MPI_INT, &status); ++n;
  PMPI_Get_count(&status, MPI_INT, &flag); /* the other fields are not set by MPI-IO */
  RESULT("%d", flag);
  CALL(MPI_File_read_at_all, file, 64 + rank * 16, in, 16, MPI_INT, &status); ++n;
  CALL(MPI_File_seek, file, rank * 16, MPI_SEEK_SET); ++n;
  CALL(MPI_File_get_position, file, &offset);
  CALL(MPI_File_read, file, in, 4, MPI_INT, &status); ++n;
  CALL(MPI_File_write, file, out + 16, 4, MPI_INT, &status); ++n;
  CALL(MPI_File_seek, file, rank * 16, MPI_SEEK_SET); ++n;
  CALL(MPI_File_read_all, file, in, 4, MPI_INT, &status); ++n;
  CALL(MPI_File_write_all, file, out + 16, 4, MPI_INT, &status); ++n;
  CALL(MPI_File_write_at_all_begin, file, rank * 16, out, 16, MPI_INT); ++n;
  CALL(MPI_File_write_at_all_end, file, out, &status); ++n;
  CALL(MPI_File_read_at_all_begin, file, rank * 16, in, 16, MPI_INT); ++n;
  CALL(MPI_File_read_at_all_end, file, in, &status); ++n;
  CALL(MPI_File_iwrite_at, file, rank * 16, out, 16, MPI_INT, &request); ++n;
  CALL(MPI_Wait, &request, &status); ++n;
  CALL(MPI_File_iread_at, file, rank * 16, in, 16, MPI_INT, &request); ++n;
  for (flag = 0; !flag;) CALL(MPI_Test, &request, &flag, &status);
  ++n;
  CALL(MPI_File_iread, file, in, 4, MPI_INT, &request); ++n;
  CALL(MPI_Waitall, 1, &request, MPI_STATUSES_IGNORE); ++n;
  CALL(MPI_File_get_errhandler, file, &handler);
  CALL(MPI_File_set_errhandler, file, handler);
  RESULT("%lx", hash(in, 1024));
  CALL(MPI_File_close, &file); ++n;
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  if (rank == 0) {
    CALL(MPI_File_delete, path, MPI_INFO_NULL);
    ++n;
  }
  EVENTS("coll", 1);
  EVENTS("io", n);
'''
CASES['generalised_requests'] = '''  MPI_Request request;
  MPI_Status status;
  CALL(MPI_Grequest_start, grequest_query, grequest_free, grequest_cancel, NULL, &request);
  CALL(MPI_Grequest_complete, request);
  CALL(MPI_Wait, &request, &status);
  RESULT("%d", status.MPI_TAG);
  EVENTS("unmodelled", 3);
'''

HELPERS = '''static void add_twice(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)b)[i] += ((int*)a)[i];
}
static void count_errors(MPI_Comm* comm, int* code, ...) {
  int n;
  (void)code;
  PMPI_Comm_size(*comm, &n);
  MPI_Comm_size(*comm, &n); /* inside the call that failed: not the program's own */
  ++errors_handled;
}
static void ignore_window_errors(MPI_Win* win, int* code, ...) {
  (void)win, (void)code;
}
static int grequest_query(void* state, MPI_Status* status) {
  (void)state;
  PMPI_Status_set_elements(status, MPI_INT, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = 12;
  return MPI_SUCCESS;
}
static int grequest_free(void* state) {
  (void)state;
  return MPI_SUCCESS;
}
static int grequest_cancel(void* state, int complete) {
  (void)state, (void)complete;
  return MPI_SUCCESS;
}
'''

# Calls that fail, with MPI_ERRORS_RETURN: a class of error as bare, and no event.
ERRORS = {
    'MPI_Send': ['out, 1, MPI_INT, 999, 0, MPI_COMM_WORLD', 'out, -1, MPI_INT, 0, 0, MPI_COMM_WORLD',
                 'out, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD', 'out, 1, MPI_INT, 0, -5, MPI_COMM_WORLD',
                 'out, 1, MPI_INT, 0, 0, MPI_COMM_NULL'],
    'MPI_Ssend': ['out, 1, MPI_INT, 999, 0, MPI_COMM_WORLD'],
    'MPI_Recv': ['in, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE',
                 'in, 1, MPI_INT, 999, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE'],
    'MPI_Isend': ['out, 1, MPI_INT, 999, 0, MPI_COMM_WORLD, &request'],
    'MPI_Irecv': ['in, 1, MPI_INT, 999, 0, MPI_COMM_WORLD, &request'],
    'MPI_Send_init': ['out, 1, MPI_INT, 999, 0, MPI_COMM_WORLD, &request'],
    'MPI_Recv_init': ['in, 1, MPI_INT, 999, 0, MPI_COMM_WORLD, &request'],
    'MPI_Probe': ['999, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE'],
    'MPI_Iprobe': ['999, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE'],
    'MPI_Bcast': ['out, 1, MPI_INT, 999, MPI_COMM_WORLD', 'out, -1, MPI_INT, 0, MPI_COMM_WORLD'],
    'MPI_Reduce': ['out, in, 1, MPI_INT, MPI_OP_NULL, 0, MPI_COMM_WORLD'],
    'MPI_Allreduce': ['out, in, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD', 'out, in, -1, MPI_INT, MPI_SUM, '
                      'MPI_COMM_WORLD'],
    'MPI_Gather': ['out, 1, MPI_INT, in, 1, MPI_INT, 999, MPI_COMM_WORLD'],
    'MPI_Scatter': ['out, 1, MPI_INT, in, 1, MPI_INT, 999, MPI_COMM_WORLD'],
    'MPI_Alltoall': ['out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, MPI_COMM_WORLD'],
    'MPI_Iallreduce': ['out, in, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, &request'],
    'MPI_Barrier': ['MPI_COMM_NULL'],
    'MPI_Comm_split': ['MPI_COMM_NULL, 0, 0, &comm'],
    'MPI_Comm_dup': ['MPI_COMM_NULL, &comm'],
    'MPI_Comm_free': ['&no_comm'],
    'MPI_Request_free': ['&no_request'],
    'MPI_Start': ['&no_request'],
    'MPI_Cart_create': ['MPI_COMM_WORLD, -1, &flag, &flag, 0, &comm'],
    'MPI_Type_commit': ['&no_type'],
    'MPI_Win_fence': ['0, MPI_WIN_NULL'],
    'MPI_Win_create': ['out, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win'],
}


def cases():
    yield from CASES.items()
    for function, calls in ERRORS.items():
        for number, arguments in enumerate(calls):
            yield f'error_{function}_{number}', (
                '  MPI_Request request = MPI_REQUEST_NULL, no_request = MPI_REQUEST_NULL;\n'
                '  MPI_Comm comm, no_comm = MPI_COMM_NULL;\n  MPI_Datatype no_type = MPI_DATATYPE_NULL;\n'
                '  MPI_Win win;\n  int flag = 0;\n'
                '  (void)request, (void)no_request, (void)comm, (void)no_comm, (void)no_type, (void)win, (void)flag;\n'
                '  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n'
                f'  CODE({function}, {arguments});\n'
                '  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);\n')
