/* Where the agent puts the account, the control file and the real driver, in every container. Tests build with another
 * folder; no variable changes it, because a container sets its own variables. */
#ifndef RUN_FOLDER
#define RUN_FOLDER "/run/halfcard"
#endif
